"""Forked processes: both have the secrets of the queries made ahead, and only one may send them."""

from __future__ import annotations

import itertools
import multiprocessing
import os
import sys
import threading
from pathlib import Path
from typing import Callable

import pytest

import blindfuse
from proxy import Proxy

pytestmark = pytest.mark.filterwarnings("ignore:This process:DeprecationWarning")


def in_fork(work: Callable[[], bool]) -> bool:
    child = os.fork()
    if child == 0:
        status = 2
        try:
            status = 0 if work() else 1
        finally:
            os._exit(status)
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0


def in_multiprocessing(work: Callable[[], bool]) -> bool:
    child = multiprocessing.get_context("fork").Process(target=lambda: sys.exit(not work()))
    child.start()
    child.join()
    return child.exitcode == 0


def in_fork_of_a_thread(work: Callable[[], bool]) -> bool:
    results: list[bool] = []
    thread = threading.Thread(target=lambda: results.append(in_fork(work)))
    thread.start()
    thread.join()
    return results == [True]


WAYS = [in_fork, in_multiprocessing, in_fork_of_a_thread]
Way = Callable[[Callable[[], bool]], bool]


def refuses(words: blindfuse.Client) -> bool:
    calls: list[Callable[[], object]] = [
        lambda: words.get("word 1"),
        lambda: words.get_many(["word 1"]),
        lambda: words.prepare(1),
        lambda: words.prepared_count,
        lambda: words.waiting_count,
        lambda: words.info,
    ]
    for call in calls:
        try:
            call()
            return False
        except blindfuse.InputError as error:
            if str(error) != "this client was made before a fork; connect again in the new process":
                return False
    return True


def assert_secrets_differ(bodies: list[bytes]) -> None:
    for a, b in itertools.combinations(bodies, 2):
        same = sum(x == y for x, y in zip(a, b))
        assert len(a) == len(b) and same * 10 < len(a)


@pytest.mark.parametrize("way", WAYS)
def test_child_and_grandchild_connect_anew(proxy: Proxy, cache: Path, way: Way) -> None:
    words = blindfuse.connect(proxy.url, cache=cache, threads=1, prepare=4)
    assert words.get("word 1") == b"meaning 1"
    assert words.prepared_count == 3

    def child() -> bool:
        own = blindfuse.connect(proxy.url, cache=cache, threads=1, prepare=4)
        own.prepare(2)

        def grandchild() -> bool:
            with blindfuse.connect(proxy.url, cache=cache, threads=1) as third:
                return refuses(words) and refuses(own) and third.get("word 4") == b"meaning 4"

        refused = refuses(words) and in_fork(grandchild)
        words.close()
        return refused and own.get("word 3") == b"meaning 3"

    assert way(child)
    assert words.get("word 2") == b"meaning 2"
    assert len(proxy.bodies) == 4
    assert_secrets_differ(proxy.bodies)


def test_no_process_id_is_asked_for(server: blindfuse.Server, cache: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "getpid", lambda: 1)
    words = server.connect(cache=cache, threads=1)
    words.prepare(2)
    assert in_fork(lambda: refuses(words) and in_fork(lambda: refuses(words)))
    assert words.get("word 1") == b"meaning 1"


def test_a_child_does_not_stop_the_server(database: blindfuse.Database, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "getpid", lambda: 1)
    with database.serve(threads=1) as server:

        def child() -> bool:
            server.stop()
            return True

        assert in_fork(child)
        assert server.running
        assert Path(server._folder.name).is_dir()
