"""From items to answers, against the real server."""

from __future__ import annotations

import copy
import json
import os
import pickle
import subprocess
import time
from pathlib import Path
from typing import Callable

import pytest

import blindfuse
from proxy import Proxy


def test_get(words: blindfuse.Client) -> None:
    assert words.get("word 7") == b"meaning 7"
    assert words.get(b"word 8") == b"meaning 8"
    assert words.get("word 2000") is None
    assert words.get(b"\x00\xff\n\t") == b"\xfe\x00\r\n"
    assert words.get("Eule") == "owl \N{OWL}".encode()
    assert words.get("empty") == b""
    assert words.get("") is None


def test_get_gives_a_default_for_a_key_that_is_not_there(words: blindfuse.Client) -> None:
    assert words.get("nowl", b"-") == b"-"
    assert words.get("word 7", b"-") == b"meaning 7"
    assert words.get("empty", b"-") == b"", "a value that is empty is there"


def test_get_text(words: blindfuse.Client) -> None:
    assert words.get_text("Eule") == "owl \N{OWL}"
    assert words.get_text("empty", "-") == ""
    assert words.get_text("nowl") is None
    assert words.get_text("nowl", 0) == 0
    with pytest.raises(UnicodeDecodeError):
        words.get_text(b"\x00\xff\n\t")


def test_get_many_keeps_keys_as_they_were_given(words: blindfuse.Client) -> None:
    found = words.get_many(["word 1", "nowl", "word 2"])
    assert found == {"word 1": b"meaning 1", "nowl": None, "word 2": b"meaning 2"}
    assert list(words.get_many(iter([b"word 3", b"no"]))) == [b"word 3", b"no"]
    assert words.get_many([]) == {}


def test_sixteen_keys_are_one_request(proxy: Proxy, cache: Path) -> None:
    with blindfuse.connect(proxy.url, cache=cache) as words:
        answers = words.get_many([f"word {i}" for i in range(16)])
        assert answers == {f"word {i}": f"meaning {i}".encode() for i in range(16)}
        assert proxy.queries == 1
        words.get_many([f"word {i}" for i in range(17)])
        assert proxy.queries == 3


def test_requests_for_several_keys(tmp_path: Path, cache: Path) -> None:
    items = {f"word {i}": f"meaning {i}" for i in range(300)}
    database = blindfuse.Database.build(items, tmp_path / "db", keys_per_request=16, threads=1)
    with database.serve(threads=1) as server, Proxy(server.url) as between:
        with blindfuse.connect(between.url, cache=cache) as words:
            assert words.info.keys_per_request == 16
            assert words.info.bucket_count == 32
            asked = [f"word {i}" for i in range(290, 307)]
            assert words.get_many(asked) == {key: items[key].encode() if key in items else None for key in asked}
            assert between.queries == 2
            answers = words.look_up(["word 7", "nowl", "word 7"])
            assert [answer.value for answer in answers] == [b"meaning 7", None, b"meaning 7"]
            assert all(answer.asked and answer.request_keys == 3 for answer in answers)
            assert answers[0].query_bytes == -(-words.info.query_bytes // 3)
            assert between.queries == 3


def test_a_key_given_twice_is_asked_for_twice(words: blindfuse.Client) -> None:
    assert [answer.value for answer in words.look_up(["word 1", "word 1"])] == [b"meaning 1"] * 2
    assert words.get_many(["word 1", "word 1"]) == {"word 1": b"meaning 1"}


def test_subscript_and_in(words: blindfuse.Client) -> None:
    assert words["word 9"] == b"meaning 9"
    with pytest.raises(KeyError):
        words["nowl"]
    assert "word 9" in words
    assert "nowl" not in words
    with pytest.raises(TypeError):
        iter(words)


def test_look_up_says_what_it_took(words: blindfuse.Client) -> None:
    answers = words.look_up(["word 5", "nowl"])
    assert [answer.found for answer in answers] == [True, False]
    for answer in answers:
        assert (answer.query_bytes, answer.response_bytes) == (words.info.query_bytes, words.info.response_bytes)
        assert answer.total_seconds >= answer.server_seconds > 0
        assert answer.request_keys == len(answers)


def test_packed_responses(tmp_path: Path, cache: Path) -> None:
    built = blindfuse.Database.build({f"word {i}": f"meaning {i}" for i in range(300)}, tmp_path / "db", mode="packed")
    with built.serve(threads=1) as server, server.connect(cache=cache) as words:
        result = words.sync()
        assert (words.info.mode, words.info.parameter_set) == ("packed", "ring-2048")
        assert result.shards_fetched == result.part_count > 0
        assert words.info.hint_bytes < 24_576 < words.info.query_bytes  # the packing key
        assert words.get_many(["word 7", "nowl"]) == {"word 7": b"meaning 7", "nowl": None}
        with pytest.raises(blindfuse.InputError, match=r"mode packed.*\(mode=\)"):
            server.connect(cache=cache, mode="hint").sync()
        with pytest.raises(blindfuse.InputError, match="'hint', 'packed'"):
            server.connect(cache=cache, mode="any")


@pytest.mark.parametrize("short_key", [False, True])
def test_packed_responses_of_two_levels(tmp_path: Path, cache: Path, short_key: bool) -> None:
    words = {f"word {i}": f"meaning {i}" for i in range(300)}
    built = blindfuse.Database.build(words, tmp_path / "db", levels=2, short_key=short_key, shards=3)
    layout = built.report.details["layout"]
    assert (layout["mode"], layout["levels"], layout["short_key_order"] > 0) == ("packed", 2, short_key)
    expected: dict[str, bytes | None] = {key: text.encode() for key, text in words.items()}
    expected["nowl"] = None
    with built.serve(threads=1) as server, server.connect(cache=cache) as client:
        assert client.get_many(list(expected)) == expected
        assert (client.info.query_bytes, client.info.response_bytes) == (layout["query_bytes"], layout["response_bytes"])


def test_build_refuses_a_wrong_choice(tmp_path: Path) -> None:
    with pytest.raises(blindfuse.BlindfuseError, match="mode= money: give auto, hint or packed"):
        blindfuse.Database.build({"word": "meaning"}, tmp_path / "db", mode="money")


def test_info_sync_and_prepare(words: blindfuse.Client, database: blindfuse.Database) -> None:
    info = words.info
    assert (info.epoch, info.key_count, info.is_index) == (database.report.epoch, 2003, False)
    assert info.parameter_set == "lwe-1774" and info.mode == "hint" and info.failure_log2 <= -40
    result = words.sync(verify=True)
    assert (result.epoch, result.shards_fetched, result.hint_bytes) == (info.epoch, 0, info.hint_bytes)
    words.prepare(3)
    assert words.prepared_count == 3
    words.get("word 1")
    assert words.prepared_count == 2
    with pytest.raises(blindfuse.InputError, match="count=-1"):
        words.prepare(-1)


def test_numbers_in_an_index_database(index_server: blindfuse.Server, cache: Path) -> None:
    with index_server.connect(cache=cache) as squares:
        assert squares.get(12) == b"144"
        assert squares.get("12") == b"144"
        assert squares.get(500) is None
        assert squares.get(2**80) is None
        assert squares.get_many([0, 499, 500]) == {0: b"0", 499: b"249001", 500: None}
        with pytest.raises(blindfuse.InputError, match="0, 1, 2"):
            squares.get(-1)
        with pytest.raises(blindfuse.InputError, match="number"):
            squares.get("twelve")
        with pytest.raises(TypeError, match="bool"):
            squares.get(True)


def test_numbers_beside_their_digits(index_server: blindfuse.Server, cache: Path) -> None:
    with index_server.connect(cache=cache) as squares:
        mixed: list[str | bytes | int] = [3, "4", b"5", 2**64, "9" * 5000]
        assert squares.get_many(mixed) == {3: b"9", "4": b"16", b"5": b"25", 2**64: None, "9" * 5000: None}
        for text in ("twelve", "007", "", " 1", "+1", "\N{SUPERSCRIPT TWO}", b"\xb2"):
            with pytest.raises(TypeError, match="some are text that is none"):
                squares.look_up([1, text])
        with pytest.raises(TypeError, match="a key is str or bytes"):
            squares.look_up([1, 1.5])  # type: ignore[list-item]
        with pytest.raises(blindfuse.InputError, match="0, 1, 2"):
            squares.look_up(["1", -1])
        assert squares.look_up([]) == []


def test_a_number_is_never_asked_for_as_text(tmp_path: Path) -> None:
    blindfuse.Database.build([str(i) for i in range(10)], tmp_path / "db", index=True)
    with blindfuse.serve(tmp_path / "db", arguments=["--watch-seconds", "1", "--grace-seconds", "0"]) as server:
        with server.connect(cache=tmp_path / "cache") as client:
            assert client.get(5) == b"5" and client.info.is_index
            blindfuse.Database.build({"5": "five"}, tmp_path / "db", fresh=True)
            end = time.monotonic() + 30
            with pytest.raises(blindfuse.ProtocolError, match="now has a keyword database"):
                while client.get(5) == b"5":
                    assert time.monotonic() < end
                    time.sleep(0.05)
            # However it is given.
            for key in (5, "5"):
                with pytest.raises(blindfuse.ProtocolError, match="make a new client"):
                    client.get(key)
        with server.connect(cache=tmp_path / "cache") as client:
            calls: list[Callable[[], object]] = [
                lambda: client.get(5),
                lambda: client.look_up([5]),
                lambda: client.look_up([5, "5"]),
                # Below what might look at the database first.
                lambda: client._session.get(5, None, None),
                lambda: client._session.look_up([5], None, None),
            ]
            for call in calls:
                with pytest.raises(TypeError, match="asked by key, not by number; give"):
                    call()
            assert client.get("5") == b"five"


def test_keys_of_wrong_types_are_refused_before_anything_is_asked(proxy: Proxy, cache: Path) -> None:
    with blindfuse.connect(proxy.url, cache=cache) as words:
        for key in (1.5, True, None, ["word 1"], bytearray(b"word 1"), object()):
            with pytest.raises(TypeError, match="a key is str or bytes"):
                words.get(key)  # type: ignore[call-overload]
        with pytest.raises(TypeError, match="asked by key, not by number"):
            words.get(5)
        with pytest.raises(TypeError, match="asked by key, not by number"):
            words.look_up(["word 1", 5])
        with pytest.raises(blindfuse.InputError, match="give its bytes"):
            words.get("\ud800")
        with pytest.raises(TypeError, match="for one, use get"):
            words.get_many("word 1")
        with pytest.raises(blindfuse.InputError, match="at most"):
            words.get(b"k" * 10_000_000)
        assert proxy.queries == 0


def test_the_cache_is_shared_with_the_program(server: blindfuse.Server, cache: Path, words: blindfuse.Client) -> None:
    program = os.environ["BLINDFUSE_CLIENT"]
    synced = subprocess.run([program, "sync", server.url, "--json", "--cache", cache], capture_output=True, check=True)
    assert json.loads(synced.stdout)["shards_fetched"] > 0
    assert words.sync().shards_fetched == 0
    got = subprocess.run([program, "get", server.url, "word 3", "--cache", cache], capture_output=True, check=True)
    assert got.stdout == b"meaning 3\n" and words.get("word 3") == b"meaning 3"


def test_an_update_is_noticed(tmp_path: Path) -> None:
    blindfuse.Database.build({"a": "1", "b": "2"}, tmp_path / "db")
    with blindfuse.serve(tmp_path / "db", arguments=["--watch-seconds", "1", "--grace-seconds", "0"]) as server:
        with server.connect(cache=tmp_path / "cache") as client:
            assert client.get("a") == b"1"
            old = client.info.epoch
            report = blindfuse.Database.build([("a", "3"), ("b", "2")], tmp_path / "db").report
            assert report.changed and report.epoch != old
            end = time.monotonic() + 30
            while client.get("a") == b"1":
                assert time.monotonic() < end
                time.sleep(0.05)
            assert client.get("a") == b"3"
            assert client.info.epoch == report.epoch


def test_what_progress_is_told(server: blindfuse.Server, cache: Path) -> None:
    told: list[blindfuse.Progress] = []
    with server.connect(cache=cache, progress=told.append) as words:
        words.sync()
    hints = [progress for progress in told if progress.stage == "fetching hints"]
    assert hints and hints[-1].done == hints[-1].total > 0


def test_what_progress_raises_ends_the_call(server: blindfuse.Server, cache: Path) -> None:
    def enough(progress: blindfuse.Progress) -> None:
        if stops:
            raise LookupError(progress.stage)

    stops = True
    with server.connect(cache=cache, progress=enough) as words:
        with pytest.raises(LookupError, match="fetching hints"):
            words.get("word 1")
        stops = False
        assert words.get("word 1") == b"meaning 1"


def test_a_progress_callback_must_not_use_its_client(server: blindfuse.Server, cache: Path) -> None:
    def ask(progress: blindfuse.Progress) -> None:
        if clients:  # a server that takes its time is reported while it is connected to
            clients[0].get("word 1")

    clients: list[blindfuse.Client] = []
    with server.connect(cache=cache, progress=ask) as words:
        clients.append(words)
        with pytest.raises(blindfuse.InputError, match="connect another one"):
            words.sync()


def test_nothing_secret_is_pickled_or_copied(words: blindfuse.Client, server: blindfuse.Server) -> None:
    for thing in (words, words._session, server):
        for attempt in (pickle.dumps, copy.copy, copy.deepcopy):
            with pytest.raises(TypeError, match="cannot be pickled or copied"):
                attempt(thing)


def test_a_closed_client_says_so(server: blindfuse.Server, cache: Path) -> None:
    with server.connect(cache=cache) as words:
        assert not words.closed and server.url in repr(words)
    words.close()
    assert words.closed and "closed" in repr(words)
    with pytest.raises(blindfuse.InputError, match="closed; connect again"):
        words.get("word 1")
