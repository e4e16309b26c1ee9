"""Databases and servers for notebooks and tests."""

from __future__ import annotations

import os
import re
import subprocess
import sys
import time
from pathlib import Path
from typing import Iterator

import pytest

import blindfuse


def test_building_again_changes_nothing(tmp_path: Path) -> None:
    items: list[tuple[str | bytes, str | bytes]] = [(b"a", "1"), ("b", b"\x00")]
    first = blindfuse.Database.build(items, tmp_path / "new folder" / "db")
    assert first.report.changed and first.report.key_count == 2
    again = blindfuse.Database.build(items, tmp_path / "new folder" / "db")
    assert not again.report.changed and again.report.epoch == first.report.epoch
    assert os.listdir(tmp_path / "new folder") == ["db"]


def test_a_database_does_not_shrink_by_accident(tmp_path: Path) -> None:
    blindfuse.Database.build({str(i): "1" for i in range(10)}, tmp_path / "db")
    with pytest.raises(blindfuse.BlindfuseError, match="allow_shrink"):
        blindfuse.Database.build({"1": "1"}, tmp_path / "db")
    database = blindfuse.Database.build({"1": "1"}, tmp_path / "db", allow_shrink=True, allow_padding=True)
    assert database.report.key_count == 1


def test_options_reach_the_program(tmp_path: Path) -> None:
    report = blindfuse.Database.build(
        {"a": "1"}, tmp_path / "db", shards=2, arity=4, params="lwe-1288", digest_bytes=4, value_room=20, threads=1
    ).report
    layout = report.details["layout"]
    assert (report.shard_count, layout["arity"], layout["lwe"], layout["digest_bytes"]) == (2, 4, "lwe-1288", 4)
    assert layout["value_bytes"] == 20


@pytest.mark.parametrize(
    ("items", "options", "words"),
    [
        ([("a", "1"), ("a", "2")], {}, "item 2"),
        ([], {}, "empty"),
        ({"a": "1"}, {"shards": 0}, "shards"),
        ({"a": "1"}, {"params": "lwe-1"}, "lwe-1774"),
        ({"a": "long"}, {"value_bytes_max": 2}, "long_values=|2"),
    ],
)
def test_what_cannot_be_built(items: object, options: dict[str, object], words: str, tmp_path: Path) -> None:
    with pytest.raises(blindfuse.BlindfuseError, match=words):
        blindfuse.Database.build(items, tmp_path / "db", **options)  # type: ignore[arg-type]
    assert not (tmp_path / "db" / "manifest.json").exists()


@pytest.mark.parametrize(
    "items", ["text", b"bytes", ["ab", "cd"], [("a", 1)], [("a",)], {"a": None}, {1: "a"}, [("a", "b", "c")]]
)
def test_items_of_wrong_types(items: object, tmp_path: Path) -> None:
    with pytest.raises(TypeError):
        blindfuse.Database.build(items, tmp_path / "db")  # type: ignore[arg-type]
    assert os.listdir(tmp_path) == []


def test_half_the_items_are_no_database(tmp_path: Path) -> None:
    def items() -> Iterator[tuple[str, str]]:
        yield "a", "1"
        raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        blindfuse.Database.build(items(), tmp_path / "db")
    assert os.listdir(tmp_path) == []


@pytest.mark.parametrize("kind", [FileNotFoundError, ConnectionResetError, TimeoutError])
def test_what_the_items_raise_comes_out_as_itself(kind: type[OSError], tmp_path: Path) -> None:
    def items() -> Iterator[tuple[str, str]]:
        yield "a", "1"
        raise error

    error = kind(2, "of the caller")
    with pytest.raises(kind) as caught:
        blindfuse.Database.build(items(), tmp_path / "db")
    assert caught.value is error
    assert os.listdir(tmp_path) == []


# Files larger than a few bytes cannot be written, as on a full disk: found when the buffer is full, or at its flush.
NO_SPACE = """
import resource, signal, sys, blindfuse
signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
resource.setrlimit(resource.RLIMIT_FSIZE, (500, resource.RLIM_INFINITY))
def items():
    for i in range(int(sys.argv[2])):
        yield f"key {i}", "value"
    if sys.argv[3] == "raises":
        raise FileNotFoundError("of the caller")
try:
    blindfuse.Database.build(items(), sys.argv[1] + "/db")
except Exception as error:
    print(type(error).__name__, error)
"""


@pytest.mark.parametrize(
    ("count", "then", "words"),
    [
        (100, "ends", "ResourceError cannot write to {}, .* make room there"),
        (10000, "ends", "ResourceError cannot write to {}, .* make room there"),
        (100, "raises", "FileNotFoundError of the caller"),
    ],
)
def test_no_space_for_the_items(tmp_path: Path, count: int, then: str, words: str) -> None:
    command = [sys.executable, "-c", NO_SPACE, str(tmp_path), str(count), then]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60)
    assert done.returncode == 0, done.stderr
    assert re.fullmatch(words.format(tmp_path) + ".*\n", done.stdout), done.stdout
    assert os.listdir(tmp_path) == []


def test_a_database_that_is_none(tmp_path: Path) -> None:
    with pytest.raises(blindfuse.BlindfuseError, match="the server did not start: .*nowhere"):
        blindfuse.serve(tmp_path / "nowhere")


def test_stop(database: blindfuse.Database) -> None:
    server = database.serve()
    assert server.running and server.pid > 0 and server.url in repr(server)
    server.stop()
    server.stop()
    assert not server.running and server.log == "" and "stopped" in repr(server)
    with pytest.raises(blindfuse.ConnectionError):
        server.connect()


def test_the_program_is_missing(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("BLINDFUSE_PROGRAM", str(tmp_path / "none"))
    with pytest.raises(blindfuse.ResourceError, match="BLINDFUSE_PROGRAM"):
        blindfuse.serve(tmp_path)
    monkeypatch.delenv("BLINDFUSE_PROGRAM")
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(blindfuse.ResourceError, match="install it"):
        blindfuse.Database.build({"a": "1"}, tmp_path / "db")


# Serves, and dies without a chance to clean up.
KILLED = """
import os, signal, sys, threading, blindfuse
servers = []
thread = threading.Thread(target=lambda: servers.append(blindfuse.serve(sys.argv[1])))
thread.start()
thread.join()
print(servers[0].pid, flush=True)
os.kill(os.getpid(), int(sys.argv[2]))
"""


def is_running(pid: int) -> bool:
    try:
        state = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
    except FileNotFoundError:
        return False
    return state != "Z"


@pytest.mark.parametrize("number", [0, 9])
def test_a_server_ends_with_its_process(database: blindfuse.Database, number: int) -> None:
    command = [sys.executable, "-c", KILLED, str(database.path), str(number)]
    done = subprocess.run(command, capture_output=True, timeout=60)
    assert done.returncode == -number, done.stderr
    end = time.monotonic() + 20
    while is_running(int(done.stdout)):
        assert time.monotonic() < end
        time.sleep(0.05)
