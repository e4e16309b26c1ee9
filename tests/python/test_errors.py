"""What goes wrong: each a clear error that names the cure, never a hang, never a wrong answer."""

from __future__ import annotations

import os
import re
import socket
import subprocess
import sys
from pathlib import Path

import pytest

import blindfuse
from blindfuse import _errors
from proxy import Page, Proxy


@pytest.mark.parametrize(
    "url", ["words", "ftp://127.0.0.1", "http://", "http://127.0.0.1:0", "http://a b", "http://[::1", "http://u:p@a", "unix:/a"]
)
def test_wrong_urls(url: str) -> None:
    with pytest.raises(blindfuse.InputError, match="write it like http://127.0.0.1:8080"):
        blindfuse.connect(url)


@pytest.mark.parametrize(
    ("options", "error", "words"),
    [
        ({"timeout": 0}, blindfuse.InputError, "timeout=0 is out of range"),
        ({"timeout": float("nan")}, blindfuse.InputError, "out of range"),
        ({"timeout": "5"}, TypeError, "number of seconds"),
        ({"threads": -1}, blindfuse.InputError, "threads=-1"),
        ({"threads": True}, TypeError, "threads= takes an int"),
        ({"prepare": 0}, blindfuse.InputError, "prepare=0"),
        ({"hint_bytes_max": -1}, blindfuse.InputError, "hint_bytes_max=-1"),
        ({"hint_memory_bytes_max": "1"}, TypeError, "hint_memory_bytes_max= takes an int"),
        ({"cache": 5}, TypeError, "cache= takes a path"),
        ({"cache": ""}, blindfuse.InputError, "cache="),
        ({"ca_file": "/no/such/file"}, blindfuse.InputError, "/no/such/file"),
        ({"api_key": "a\r\nX: y"}, blindfuse.InputError, "api_key="),
        ({"api_key": "no!key"}, blindfuse.InputError, "^api_key= is not an API key"),
        ({"api_key": ""}, blindfuse.InputError, "api_key= is empty"),
        ({"api_key": b"a"}, TypeError, "api_key= takes a str"),
        ({"proxy": 3128}, TypeError, "proxy= takes a str"),
        ({"proxy": ""}, blindfuse.InputError, "proxy= is empty"),
        ({"progress": 1}, TypeError, "progress= takes"),
    ],
)
def test_wrong_options(
    options: dict[str, object], error: type[Exception], words: str, server: blindfuse.Server
) -> None:
    with pytest.raises(error, match=words):
        blindfuse.connect(server.url, **options)  # type: ignore[arg-type]


def test_a_url_that_is_no_text() -> None:
    with pytest.raises(TypeError, match="url= takes a str"):
        blindfuse.connect(b"http://127.0.0.1:8080")  # type: ignore[arg-type]


class Crowded:
    """What the extension module gives for two keys of which one was not asked for."""

    def look_up(self, keys: list[bytes], progress: object, stop: object) -> list[tuple[object, ...]]:
        assert keys == [b"owl", b"lark"]
        return [(b"bird", 10, 20, 0.1, 0.2, 0.3, 0.6, 1, True), (None, 0, 0, 0.0, 0.0, 0.0, 0.0, 0, False)]

    def signer(self) -> tuple[str, int, int, str]:
        return "", 0, 0, ""


def test_keys_that_were_not_asked_for() -> None:
    words = blindfuse.Client(Crowded(), "http://127.0.0.1:8080", None)  # type: ignore[arg-type]
    answers = words.look_up(["owl", "lark"])
    assert [answer.asked for answer in answers] == [True, False]
    assert [answer.value for answer in answers] == [b"bird", None]
    with pytest.raises(blindfuse.NotAskedError, match="^1 of 2 keys was not asked for.*your next call") as caught:
        words.get_many(["owl", "lark"])
    assert "lark" not in str(caught.value)
    error = _errors.from_native("not-asked", "1 of 1 key was not asked for", None, None)
    assert type(error) is blindfuse.NotAskedError


def test_nobody_answers() -> None:
    with socket.socket() as nobody:
        nobody.bind(("127.0.0.1", 0))
        with pytest.raises(blindfuse.ConnectionError, match="connection refused; check the port") as caught:
            blindfuse.connect(f"http://127.0.0.1:{nobody.getsockname()[1]}")
    assert isinstance(caught.value, ConnectionError)


@pytest.mark.parametrize(
    ("body", "status"),
    [(b"<html>a web page</html>", 200), (b"{}", 200), (b"", 200), (b"not here", 404), (b"[" * 9000, 200)],
)
def test_servers_of_another_kind(body: bytes, status: int) -> None:
    with Page(body, status) as other, pytest.raises(blindfuse.ProtocolError, match=other.url):
        blindfuse.connect(other.url)


@pytest.mark.parametrize("hint_memory_bytes_max", [1 << 30, 0])
def test_an_altered_hint_is_found_whatever_the_key(
    server: blindfuse.Server, cache: Path, hint_memory_bytes_max: int
) -> None:
    with server.connect(cache=cache) as words:
        words.sync()
    hint = next(cache.rglob("*.hint"))
    hint.write_bytes(bytes(hint.stat().st_size))
    with server.connect(cache=cache, hint_memory_bytes_max=hint_memory_bytes_max) as words:
        for i in range(8):
            with pytest.raises(blindfuse.CacheError, match=hint.name):
                words.get(f"word {i}")
        words.sync(verify=True)
        assert words.get("word 1") == b"meaning 1"


def test_no_answer_in_time(proxy: Proxy, cache: Path) -> None:
    with blindfuse.connect(proxy.url, cache=cache, timeout=1) as words:
        words.sync()
        proxy.may_answer.clear()
        with pytest.raises(blindfuse.ConnectionError, match="nothing came for 1 s .*wait longer with timeout=$"):
            words.get("word 1")


def test_too_large_a_database_is_refused(server: blindfuse.Server, cache: Path) -> None:
    with server.connect(cache=cache, hint_bytes_max=10) as words:
        with pytest.raises(blindfuse.InputError, match="hint_bytes_max="):
            words.get("word 1")


def test_a_cache_that_cannot_be(server: blindfuse.Server, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("no folder")
    with pytest.raises(blindfuse.BlindfuseError, match="file"):
        with server.connect(cache=tmp_path / "file" / "cache") as words:
            words.get("word 1")


# Files larger than a few bytes cannot be written, as on a full disk.
NO_SPACE = """
import resource, signal, sys, blindfuse
signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
resource.setrlimit(resource.RLIMIT_FSIZE, (500, resource.RLIM_INFINITY))
words = blindfuse.connect(sys.argv[1], cache=sys.argv[2])
try:
    words.get("word 1")
except blindfuse.ResourceError as error:
    print(error)
    resource.setrlimit(resource.RLIMIT_FSIZE, (resource.RLIM_INFINITY,) * 2)
    assert words.get("word 1") == b"meaning 1"
"""


def test_no_space_on_the_disk(server: blindfuse.Server, cache: Path) -> None:
    command = [sys.executable, "-c", NO_SPACE, server.url, str(cache)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60)
    assert done.returncode == 0, done.stderr
    assert str(cache) in done.stdout


def test_keys_for_the_server(tmp_path: Path, database: blindfuse.Database) -> None:
    program = os.environ["BLINDFUSE_PROGRAM"]
    made = subprocess.run([program, "api-key", "alice", "--file", tmp_path / "keys"], capture_output=True, check=True)
    with database.serve(arguments=["--api-keys", str(tmp_path / "keys")]) as server:
        with pytest.raises(blindfuse.ServerError, match="api_key=") as caught:
            server.connect(cache=tmp_path / "cache")
        assert caught.value.status == 401
        with server.connect(cache=tmp_path / "cache", api_key=made.stdout.decode().strip()) as words:
            assert words.get("word 1") == b"meaning 1"


def test_a_busy_server() -> None:
    with Page(b"{}", 503, "application/problem+json") as busy, pytest.raises(blindfuse.ServerBusyError) as caught:
        blindfuse.connect(busy.url, timeout=1)  # it would wait for as long before it asks again
    assert caught.value.status == 503 and caught.value.retry_after is None


def test_cures_are_reworded_from_what_the_library_says() -> None:
    """A message that is reworded there has to be here as well: else Python's users read of command lines."""
    client = Path(__file__).resolve().parents[2] / "client"
    # Long texts are written in pieces.
    sources = "".join(re.sub(r'"\s*\n\s*"', "", path.read_text()) for path in client.glob("*.cpp"))
    for words in _errors._CURES:
        assert words in sources, words
