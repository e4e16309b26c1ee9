"""Servers that show another database than the operator signed: each lie is refused, and named."""

from __future__ import annotations

import base64
import importlib
import json
import sys
import warnings
from pathlib import Path
from typing import Any, Iterator

import pytest

import blindfuse
from proxy import Page

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "protocol"))
plain_ed25519: Any = importlib.import_module("plain_ed25519")

SEED, OTHER_SEED = bytes([1]) * 32, bytes([2]) * 32
KEY, OTHER_KEY = (plain_ed25519.public_key(seed).hex() for seed in (SEED, OTHER_SEED))
TIME = 1795545000  # 2026-11-24T18:30:00Z


def key_file(path: Path, seed: bytes = SEED) -> Path:
    """As RFC 8410 has it."""
    data = base64.b64encode(bytes.fromhex("302e020100300506032b657004220420") + seed).decode()
    path.write_text(f"-----BEGIN PRIVATE KEY-----\n{data}\n-----END PRIVATE KEY-----\n")
    return path


class LyingServer(Page):
    """Answers every request with a manifest: clients that refuse it ask for nothing else."""

    def __init__(self, database: blindfuse.Database) -> None:
        manifest = json.loads((database.path / "manifest.json").read_text())
        self.members: dict[str, str | int] = manifest
        super().__init__(b"", kind="application/json")
        self.send()

    def send(self, **members: str | int) -> None:
        self.page = (200, "application/json", json.dumps(self.members | members).encode())

    def sign(self, number: int, seed: bytes = SEED, since: int = TIME, **changed: str | int) -> None:
        """As `number`, this many seconds after `since`; then some members are changed."""
        made = self.members | {
            "sequence": number,
            "time": since + number,
            "signer": plain_ed25519.public_key(seed).hex(),
        }
        text = json.dumps(made, sort_keys=True, separators=(",", ":"))
        made["signature"] = plain_ed25519.sign(seed, b"blindfuse/manifest/1" + text.encode()).hex()
        self.send(**(made | changed))


@pytest.fixture
def liar(database: blindfuse.Database) -> Iterator[LyingServer]:
    running = LyingServer(database)
    with running:
        yield running


def refusal(liar: LyingServer, cache: Path, **options: Any) -> str:
    liar.requests.clear()
    with pytest.raises(blindfuse.SignatureError) as error:
        blindfuse.connect(liar.url, cache=cache, **{"server_key": KEY, **options})
    assert isinstance(error.value, blindfuse.ProtocolError)
    assert liar.requests == ["GET /v1/database"]
    return str(error.value)


def test_a_signed_database(tmp_path: Path) -> None:
    database = blindfuse.Database.build({"tea": "hot"}, tmp_path / "db", sign=key_file(tmp_path / "key"), threads=1)
    with database.serve(threads=1) as server, server.connect(cache=tmp_path / "cache", server_key=KEY) as drinks:
        assert drinks.get("tea") == b"hot"
        signer = drinks.signer
        assert signer is not None
        assert (signer.key, signer.sequence) == (KEY, database.report.details["signature"]["sequence"])
        assert signer.time.timestamp() == signer.sequence
        with pytest.raises(blindfuse.SignatureError, match="signed by another key"):
            server.connect(cache=tmp_path / "cache", server_key=OTHER_KEY)
    with pytest.raises(blindfuse.BlindfuseError, match="is signed by"):
        blindfuse.Database.build({"tea": "hot"}, tmp_path / "db", threads=1)
    again = blindfuse.Database.build({"tea": "hot"}, tmp_path / "db", unsigned=True, threads=1)
    assert again.report.epoch == database.report.epoch
    assert again.report.details["signature"] is None


def test_no_signature(words: blindfuse.Client) -> None:
    assert words.signer is None


def test_each_lie_has_its_name(liar: LyingServer, cache: Path) -> None:
    messages = [refusal(liar, cache)]
    liar.sign(5, OTHER_SEED)
    messages.append(refusal(liar, cache))
    liar.sign(5, sequence=6)
    messages.append(refusal(liar, cache))
    liar.sign(20)
    blindfuse.connect(liar.url, cache=cache, server_key=KEY).close()
    liar.sign(10)
    messages.append(refusal(liar, cache))
    liar.sign(20, since=TIME + 1)
    messages.append(refusal(liar, cache))
    names = ["is not signed", "by another key", "is wrong", "rolled back", "with the same sequence number"]
    assert [[name in message for name in names] for message in messages] == [
        [name == own for name in names] for own in names
    ]
    assert all("--" not in message for message in messages)
    assert "(server_key=)" in messages[0]
    assert "number 10 of 2026-11-24T18:30:10Z" in messages[3]
    assert "number 20 of 2026-11-24T18:30:20Z" in messages[3]
    assert "(allow_rollback=True)" in messages[3]


def test_without_a_key_the_first_signer_is_remembered(liar: LyingServer, cache: Path) -> None:
    liar.sign(5)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        blindfuse.connect(liar.url, cache=cache).close()
    liar.sign(9, OTHER_SEED)
    with pytest.warns(blindfuse.SignerWarning, match=f"was signed by {KEY}, and now is by {OTHER_KEY}") as told:
        blindfuse.connect(liar.url, cache=cache).close()
    assert "(server_key=)" in str(told[0].message)
    liar.send()
    with pytest.warns(blindfuse.SignerWarning, match="now is not signed"):
        blindfuse.connect(liar.url, cache=cache).close()


@pytest.mark.parametrize("key", ["", "ab", "A" * 64, "g" * 64, "a" * 65])
def test_a_key_that_is_none(key: str, server: blindfuse.Server) -> None:
    with pytest.raises(blindfuse.InputError, match="server_key= is not a public key"):
        server.connect(server_key=key)


def test_a_key_that_is_no_text(server: blindfuse.Server) -> None:
    with pytest.raises(TypeError, match="server_key= takes a str"):
        server.connect(server_key=b"a" * 64)
