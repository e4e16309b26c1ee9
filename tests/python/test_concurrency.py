"""Threads, asyncio, Ctrl-C, and the end of the interpreter."""

from __future__ import annotations

import asyncio
import signal
import subprocess
import sys
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

import blindfuse
from blindfuse import _client
from proxy import Proxy

Held = tuple[blindfuse.Client, Proxy]

# The proxy holds for a minute: what takes half of it was not stopped.
STOPPED_S = 30


def wait_for_waiting(words: blindfuse.Client, count: int) -> None:
    end = time.monotonic() + STOPPED_S
    while words.waiting_count < count:
        assert time.monotonic() < end
        time.sleep(0.01)


def test_threads_share_requests(held: Held) -> None:
    words, proxy = held
    with ThreadPoolExecutor(33) as pool:
        found = pool.map(words.get, [f"word {i}" for i in range(33)])
        assert proxy.asked.wait(STOPPED_S)
        wait_for_waiting(words, 32)
        proxy.may_answer.set()
        assert list(found) == [f"meaning {i}".encode() for i in range(33)]
        assert proxy.queries == 3
        keys = [f"word {i}" for i in range(128)]
        assert list(pool.map(words.get, keys)) == [f"meaning {i}".encode() for i in range(128)]


def test_awaited_together_is_asked_together(held: Held) -> None:
    words, proxy = held

    async def main() -> None:
        async with words:
            found = asyncio.gather(*(words.aget(f"word {i}") for i in range(17)))
            assert await asyncio.to_thread(proxy.asked.wait, STOPPED_S)
            await asyncio.to_thread(wait_for_waiting, words, 16)
            proxy.may_answer.set()
            assert await found == [f"meaning {i}".encode() for i in range(17)]
            assert proxy.queries == 2
            assert words.waiting_count == 0
            await words.aprepare(2)
            assert await words.aget_many(["word 1", "nowl"]) == {"word 1": b"meaning 1", "nowl": None}
            assert [answer.found for answer in await words.alook_up(["nowl", "word 1"])] == [False, True]
            assert (await words.ainfo()).key_count == 2003

    asyncio.run(main())


def test_aconnect_is_awaited_or_entered_or_a_task(proxy: Proxy, cache: Path) -> None:
    async def main() -> None:
        async with blindfuse.aconnect(proxy.url, cache=cache) as words:
            assert await words.aget("word 7") == b"meaning 7"
            assert await words.aget("nowl", b"-") == b"-"
            assert await words.aget_text("Eule") == "owl \N{OWL}"
            assert await words.aget_text("nowl", "-") == "-"
        assert words.closed
        awaited = await blindfuse.aconnect(proxy.url, cache=cache)
        of_task = await asyncio.create_task(blindfuse.aconnect(proxy.url, cache=cache))
        of_wait = await asyncio.wait_for(blindfuse.aconnect(proxy.url, cache=cache), 60)
        for client in (awaited, of_task, of_wait):
            assert not client.closed
            client.close()
        with pytest.raises(blindfuse.ConnectionError):
            async with blindfuse.aconnect("http://127.0.0.1:1"):
                raise AssertionError("nothing answers there")
        with pytest.raises(blindfuse.InputError, match="is not a mode"):
            blindfuse.aconnect(proxy.url, mode="hnt")  # type: ignore[arg-type]

    asyncio.run(main())


def test_other_threads_go_on_meanwhile(held: Held) -> None:
    words, proxy = held
    count = 0

    def release() -> None:
        nonlocal count
        proxy.asked.wait(STOPPED_S)
        while count < 100000:
            count += 1
        proxy.may_answer.set()

    thread = threading.Thread(target=release)
    thread.start()
    start = time.monotonic()
    assert words.get("word 1") == b"meaning 1"
    assert time.monotonic() - start < STOPPED_S
    thread.join()


def test_cancelling_a_task_stops_its_look_up(held: Held) -> None:
    words, proxy = held

    async def main() -> None:
        task = asyncio.create_task(words.aget("word 1"))
        while not proxy.asked.is_set():
            await asyncio.sleep(0.01)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        with pytest.raises(asyncio.TimeoutError):
            await asyncio.wait_for(words.aget("word 2"), 0.2)
        proxy.may_answer.set()
        assert await words.aget("word 3") == b"meaning 3"

    start = time.monotonic()
    asyncio.run(main())
    assert time.monotonic() - start < STOPPED_S


def test_closing_stops_what_runs(held: Held) -> None:
    words, proxy = held
    with ThreadPoolExecutor(2) as pool:
        running = [pool.submit(words.get, f"word {i}") for i in range(2)]
        assert proxy.asked.wait(STOPPED_S)
        start = time.monotonic()
        words.close()
        for future in running:
            with pytest.raises(blindfuse.CancelledError):
                future.result()
        assert time.monotonic() - start < STOPPED_S


def test_closing_stops_what_is_awaited_and_what_waits_for_a_thread(held: Held) -> None:
    words, proxy = held
    count = 100
    assert count > _client._THREADS

    async def main() -> None:
        tasks = [asyncio.create_task(words.aget(f"word {i}")) for i in range(count)]
        assert await asyncio.to_thread(proxy.asked.wait, STOPPED_S)
        words.close()
        outcomes = await asyncio.gather(*tasks, return_exceptions=True)
        assert {type(outcome) for outcome in outcomes} == {blindfuse.CancelledError}
        with pytest.raises(blindfuse.InputError, match="closed; connect again"):
            await words.aget("word 1")

    start = time.monotonic()
    asyncio.run(main())
    assert time.monotonic() - start < STOPPED_S


def test_closing_in_another_thread_while_tasks_begin(server: blindfuse.Server, cache: Path) -> None:
    async def main(words: blindfuse.Client, delay: float) -> list[object]:
        closing = threading.Timer(delay, words.close)
        closing.start()
        outcomes: list[object] = []
        while not words.closed:
            outcomes += await asyncio.gather(*(words.aget(i) for i in range(8)), return_exceptions=True)
        closing.join()
        return outcomes

    kinds = (TypeError, blindfuse.CancelledError, blindfuse.InputError)
    for i in range(20):
        with server.connect(cache=cache) as words:
            words.sync()
            outcomes = asyncio.run(main(words, i / 2000))
            assert [outcome for outcome in outcomes if not isinstance(outcome, kinds)] == []


# Asks where no answer comes, says when the main thread does, and is interrupted.
INTERRUPTED = """
import signal, sys, threading, time, blindfuse
signal.signal(signal.SIGINT, signal.default_int_handler)  # who runs the tests may ignore it
words = blindfuse.connect(sys.argv[1], cache=sys.argv[2])
behind = sys.argv[3] == "behind another thread"

def say_when_it_waits():
    while words.waiting_count == 0:
        time.sleep(0.01)
    print("waits", flush=True)

if behind:
    threading.Thread(target=words.get, args=("word 1",), daemon=True).start()
    sys.stdin.readline()  # the request for it has come
    threading.Thread(target=say_when_it_waits, daemon=True).start()
try:
    words.get("word 2")
except KeyboardInterrupt:
    print("interrupted", flush=True)
    if behind:
        words.close()
"""


@pytest.mark.parametrize("where", ["alone", "behind another thread"])
def test_ctrl_c(held: Held, cache: Path, where: str) -> None:
    _, proxy = held
    command = [sys.executable, "-c", INTERRUPTED, proxy.url, str(cache), where]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as process:
        assert process.stdin is not None and process.stdout is not None
        assert proxy.asked.wait(STOPPED_S)
        if where != "alone":
            process.stdin.write(b"\n")
            process.stdin.flush()
            assert process.stdout.readline() == b"waits\n"
        start = time.monotonic()
        process.send_signal(signal.SIGINT)
        try:
            output, _ = process.communicate(timeout=STOPPED_S)
        finally:
            process.kill()
        assert (process.returncode, output) == (0, b"interrupted\n")
        assert time.monotonic() - start < STOPPED_S


DAEMON = """
import sys, threading, time, blindfuse
words = blindfuse.connect(sys.argv[1], cache=sys.argv[2], progress=eval(sys.argv[3]))
for i in range(4):
    threading.Thread(target=words.get, args=(f"word {i}",), daemon=True).start()
time.sleep(1)
"""


# The last of these ends while the callback sleeps, which asks for the interpreter's lock afterwards.
@pytest.mark.parametrize("progress", ["None", "print", "lambda *report: time.sleep(0.2)"])
def test_the_interpreter_ends_while_daemon_threads_wait(held: Held, cache: Path, progress: str) -> None:
    _, proxy = held
    command = [sys.executable, "-c", DAEMON, proxy.url, str(cache), progress]
    done = subprocess.run(command, capture_output=True, timeout=STOPPED_S)
    assert (done.returncode, done.stderr) == (0, b"")
