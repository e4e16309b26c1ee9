"""Connecting to a server."""

from __future__ import annotations

import os
from types import TracebackType
from typing import Any, Callable, Coroutine, Literal

from . import _arguments, _blindfuse
from ._client import Client, start_in_thread
from ._progress import ProgressCallback, report_to

_Mode = Literal["hint", "packed"]
_Stop = _blindfuse.Stop


class Connecting(Coroutine[Any, Any, Client]):
    """A client that is being connected; `blindfuse.aconnect` makes one. To be awaited, or for `async with`."""

    def __init__(self, work: Callable[[_Stop | None], Client]) -> None:
        """Use `blindfuse.aconnect`."""
        self._coroutine = _connected(work)
        self._client: Client | None = None

    def __await__(self) -> Any:
        return self._coroutine.__await__()

    def send(self, value: Any) -> Any:
        return self._coroutine.send(value)

    def throw(self, *error: Any) -> Any:
        return self._coroutine.throw(*error)

    def close(self) -> None:
        self._coroutine.close()

    async def __aenter__(self) -> Client:
        self._client = await self
        return self._client

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._client is not None:
            self._client.close()


async def _connected(work: Callable[[_Stop | None], Client]) -> Client:
    return await start_in_thread(None, work)


def connect(
    url: str,
    *,
    cache: str | os.PathLike[str] | None = None,
    threads: int = 0,
    prepare: int = 1,
    timeout: float = 60,
    ca_file: str | os.PathLike[str] | None = None,
    api_key: str | None = None,
    proxy: str | None = None,
    mode: _Mode | None = None,
    server_key: str | None = None,
    allow_rollback: bool = False,
    progress: ProgressCallback | bool | None = None,
    hint_bytes_max: int = 64 << 30,
    transfer_bytes_max: int = 1 << 28,
    hint_memory_bytes_max: int = 1 << 30,
) -> Client:
    """A client of the server at `url`, as in "http://127.0.0.1:8080". Checks that one answers there.

    cache: folder for hints, shared with other clients (default: $XDG_CACHE_HOME/blindfuse or ~/.cache/blindfuse)
    threads: to prepare queries with; 0 is one a processor; in the mode "packed" it is one
    prepare: queries made in one pass when none are left
    timeout: the deadline of a call in seconds, with all requests that it makes and repeats; it has one more for each
        32,000 bytes that it moves, as the database announces them
    ca_file: certificates (PEM) to trust for https instead of the system's
    api_key: what the server asks for, if it does
    proxy: an HTTP proxy, "http://HOST:PORT" or "http://USER:PASSWORD@HOST:PORT" (default: what the environment says)
    mode: "hint" or "packed": a database in another mode, whose secrecy rests on something else, is refused
    server_key: the public key of the database, 64 hex digits: one that is not signed with it, or is older than one seen
        before, raises SignatureError (default: a SignerWarning when the key that was seen first changes)
    allow_rollback: with a key, take a database that is older than one seen before
    progress: a function that is called with a blindfuse.Progress now and then, and ends the call by raising; or True or
        False for a progress bar of tqdm or none (default: one where stderr is a terminal and tqdm is installed)
    hint_bytes_max, transfer_bytes_max: a database is refused if its hints take more, or its query, its response, or its
        table of shards and packs
    hint_memory_bytes_max: hints of at most this many bytes in all are kept in memory; larger ones are all read again in
        every look-up
    """
    return _connector(locals())(None)


def aconnect(
    url: str,
    *,
    cache: str | os.PathLike[str] | None = None,
    threads: int = 0,
    prepare: int = 1,
    timeout: float = 60,
    ca_file: str | os.PathLike[str] | None = None,
    api_key: str | None = None,
    proxy: str | None = None,
    mode: _Mode | None = None,
    server_key: str | None = None,
    allow_rollback: bool = False,
    progress: ProgressCallback | bool | None = None,
    hint_bytes_max: int = 64 << 30,
    transfer_bytes_max: int = 1 << 28,
    hint_memory_bytes_max: int = 1 << 30,
) -> Connecting:
    """connect() for asyncio: `words = await aconnect(url)`, or `async with aconnect(url) as words`."""
    return Connecting(_connector(locals()))


def _connector(options: dict[str, object]) -> Callable[[_Stop | None], Client]:
    """The function that connects, once all arguments are found to be right."""
    url = options["url"]
    if not isinstance(url, str):
        raise TypeError(f"url= takes a str such as 'http://127.0.0.1:8080', not {type(url).__name__}")
    cache, ca_file = (_arguments.path(name, options[name]) for name in ("cache", "ca_file"))
    threads = _arguments.number("threads", options["threads"], 0, 1024)
    prepare = _arguments.number("prepare", options["prepare"], 1, 1024)
    timeout = _arguments.seconds(options["timeout"])
    api_key = _arguments.text("api_key", options["api_key"])
    proxy = _arguments.text("proxy", options["proxy"])
    mode = _arguments.mode(options["mode"])
    trust = (_arguments.server_key(options["server_key"]), bool(options["allow_rollback"]))
    limits = (
        _arguments.number(name, options[name], 0, 2**63)
        for name in ("hint_bytes_max", "transfer_bytes_max", "hint_memory_bytes_max")
    )
    hints, transfers, memory = limits
    report = report_to(options["progress"])

    def work(stop: _Stop | None) -> Client:
        session = _blindfuse.connect(
            url,
            cache,
            threads,
            prepare,
            timeout,
            ca_file,
            api_key,
            proxy,
            mode,
            hints,
            transfers,
            memory,
            *trust,
            report,
            stop,
        )
        client = Client(session, url, report)
        client._warn()
        return client

    return work
