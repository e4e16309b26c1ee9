"""Private look-ups in one database."""

from __future__ import annotations

import asyncio
import datetime
import threading
import warnings
from concurrent.futures import ThreadPoolExecutor
from types import TracebackType
from typing import Awaitable, Callable, ClassVar, Iterable, NoReturn, Sequence, TypeVar, overload

from . import _arguments, _blindfuse
from ._errors import InputError, CancelledError, SignerWarning, in_our_words, not_asked
from ._keys import AnyKey, Key, native_key, native_keys
from ._progress import Report, TerminalBar
from ._results import Answer, DatabaseInfo, Signer, SyncResult

_Result = TypeVar("_Result")
_Default = TypeVar("_Default")
_Stop = _blindfuse.Stop

# Threads for awaiting: while the keys of one full request wait for their answers, those of the next gather.
_THREADS = 2 * _blindfuse.QUERIES_PER_REQUEST


class Client:
    """Private look-ups in one database; `blindfuse.connect` makes one.

    The server learns how many keys are asked for and when; not which, and not whether they are there.

    Any number of threads and tasks may use one client: keys that wait at the same time are asked for in one request.
    After an error it can be used again. A forked child cannot use it, and it cannot be pickled.
    """

    # words["owl"] and "owl" in words are look-ups. Without this, iter(words) would ask for 0, 1, 2, ...
    __iter__: ClassVar[None] = None

    def __init__(self, session: _blindfuse.Session, url: str, report: Report | None) -> None:
        """Use `blindfuse.connect`."""
        self._session = session
        self._url = url
        self._report = report
        self._pool: ThreadPoolExecutor | None = None
        self._pool_lock = threading.Lock()
        self._closed = False
        self._warned = ""
        self._process = _blindfuse.ProcessToken.current()

    # Look-ups

    @overload
    def get(self, key: Key) -> bytes | None: ...
    @overload
    def get(self, key: Key, default: _Default) -> bytes | _Default: ...
    def get(self, key: Key, default: object = None) -> object:
        """The value of a key, or `default` when the key is not there."""
        value = self._get(key, None)
        return default if value is None else value

    @overload
    def get_text(self, key: Key) -> str | None: ...
    @overload
    def get_text(self, key: Key, default: _Default) -> str | _Default: ...
    def get_text(self, key: Key, default: object = None) -> object:
        """Like get(), with the value as text. A value that is not UTF-8 raises UnicodeDecodeError."""
        value = self._get(key, None)
        return default if value is None else value.decode()

    def get_many(self, keys: Iterable[AnyKey]) -> dict[AnyKey, bytes | None]:
        """The values of several keys; None for those that are not there.

        Requests are for `info.keys_per_request` keys where that is more than 1, and for 16 keys otherwise. Every key is
        checked before any is asked for. The server sees how many keys were given: one that is given twice counts twice.

        Where requests are for several keys, some may find no place in them: NotAskedError.
        """
        return self._get_many(_several(keys), None)

    def look_up(self, keys: Iterable[Key]) -> list[Answer]:
        """Like get_many, in the order of the keys, with what each look-up took, and whether it was asked for."""
        return self._look_up(_several(keys), None)

    def __getitem__(self, key: Key) -> bytes:
        """get(), with KeyError for a key that is not there. Each time a look-up, as the server sees."""
        value = self.get(key)
        if value is None:
            raise KeyError(key)
        return value

    def __contains__(self, key: Key) -> bool:
        """Whether get() gives a value. Each time a look-up, as the server sees."""
        return self.get(key) is not None

    # The database

    @property
    def url(self) -> str:
        return self._url

    @property
    def info(self) -> DatabaseInfo:
        """What is known of the database. Fetches the hints when they are not here yet."""
        return self._info(None)

    @property
    def signer(self) -> Signer | None:
        """The signer of the database, as of the last manifest that was fetched; None: it is not signed."""
        key, sequence, seconds, _ = self._alive().signer()
        if not key:
            return None
        try:
            time = datetime.datetime.fromtimestamp(seconds, datetime.timezone.utc)
        except (OverflowError, ValueError, OSError):
            time = datetime.datetime.max.replace(tzinfo=datetime.timezone.utc)
        return Signer(key, sequence, time)

    def sync(self, verify: bool = False) -> SyncResult:
        """Brings the hints on disk up to the server's current epoch; look-ups do so by themselves.

        With `verify`, checks every one that is on disk first.
        """
        return self._sync(verify, None)

    def prepare(self, count: int) -> None:
        """Makes `count` more queries ahead, in one pass, which makes later look-ups faster."""
        self._prepare(count, None)

    @property
    def prepared_count(self) -> int:
        """How many queries are ready."""
        return self._alive().prepared_count()

    @property
    def waiting_count(self) -> int:
        """How many calls for look-ups wait for another thread's turn to end; one for several keys counts once.

        Calls that await one of the client's threads do not count.
        """
        return self._alive().waiting_count()

    # These calls are for asyncio. Cancelling the task stops the work.

    @overload
    async def aget(self, key: Key) -> bytes | None: ...
    @overload
    async def aget(self, key: Key, default: _Default) -> bytes | _Default: ...
    async def aget(self, key: Key, default: object = None) -> object:
        """get() for asyncio. Those that are awaited together are asked for together."""
        value = await self._in_thread(lambda stop: self._get(key, stop))
        return default if value is None else value

    @overload
    async def aget_text(self, key: Key) -> str | None: ...
    @overload
    async def aget_text(self, key: Key, default: _Default) -> str | _Default: ...
    async def aget_text(self, key: Key, default: object = None) -> object:
        """get_text() for asyncio."""
        value = await self._in_thread(lambda stop: self._get(key, stop))
        return default if value is None else value.decode()

    async def aget_many(self, keys: Iterable[AnyKey]) -> dict[AnyKey, bytes | None]:
        """get_many() for asyncio."""
        several = _several(keys)
        return await self._in_thread(lambda stop: self._get_many(several, stop))

    async def alook_up(self, keys: Iterable[Key]) -> list[Answer]:
        """look_up() for asyncio."""
        several = _several(keys)
        return await self._in_thread(lambda stop: self._look_up(several, stop))

    async def ainfo(self) -> DatabaseInfo:
        """info for asyncio."""
        return await self._in_thread(self._info)

    async def sync_async(self, verify: bool = False) -> SyncResult:
        """sync() for asyncio."""
        return await self._in_thread(lambda stop: self._sync(verify, stop))

    async def aprepare(self, count: int) -> None:
        """prepare() for asyncio."""
        await self._in_thread(lambda stop: self._prepare(count, stop))

    # Its end

    def close(self) -> None:
        """Closes the client. Calls that run in other threads end with CancelledError."""
        self._closed = True
        if not self._process.is_current():
            return
        self._session.close()
        with self._pool_lock:
            pool, self._pool = self._pool, None
        if pool is not None:
            # A call that waits for a thread still begins, to find the client closed: its caller did not cancel it.
            pool.shutdown(wait=False)

    @property
    def closed(self) -> bool:
        return self._closed

    def __enter__(self) -> Client:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    async def __aenter__(self) -> Client:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def __repr__(self) -> str:
        return f"<blindfuse.Client {self._url}{', closed' if self._closed else ''}>"

    def __reduce__(self) -> NoReturn:
        raise TypeError(
            "a Client cannot be pickled or copied: it holds secrets of queries; connect again where you need one"
        )

    # The part of a client that does the work; `stop` may be requested from another thread.

    def _alive(self) -> _blindfuse.Session:
        if not self._process.is_current():
            raise InputError("this client was made before a fork; connect again in the new process")
        if self._closed:
            raise InputError("this client is closed; connect again")
        return self._session

    def _done(self) -> None:
        if isinstance(self._report, TerminalBar):
            self._report.clear()
        self._warn()

    def _warn(self) -> None:
        """Says what the library has to say of the signer, once."""
        if self._closed or not self._process.is_current():
            return
        try:
            warning = self._session.signer()[3]
        except InputError:
            return  # closed meanwhile
        if warning != self._warned:
            self._warned = warning
            if warning:
                warnings.warn(in_our_words(warning), SignerWarning, stacklevel=4)

    def _get(self, key: Key, stop: _Stop | None) -> bytes | None:
        session = self._alive()
        asked = native_key(key)
        try:
            return session.get(asked, self._report, stop)
        finally:
            self._done()

    def _get_many(self, keys: list[AnyKey], stop: _Stop | None) -> dict[AnyKey, bytes | None]:
        answers = self._look_up(keys, stop)
        left_out = sum(not answer.asked for answer in answers)
        if left_out > 0:
            raise not_asked(left_out, len(answers))
        return {key: answer.value for key, answer in zip(keys, answers)}

    def _look_up(self, keys: Sequence[Key], stop: _Stop | None) -> list[Answer]:
        session = self._alive()
        asked = native_keys(keys)
        try:
            return [Answer(*answer) for answer in session.look_up(asked, self._report, stop)]
        finally:
            self._done()

    def _info(self, stop: _Stop | None) -> DatabaseInfo:
        try:
            return DatabaseInfo(*self._alive().database(self._report, stop))
        finally:
            self._done()

    def _sync(self, verify: bool, stop: _Stop | None) -> SyncResult:
        try:
            return SyncResult(*self._alive().sync(bool(verify), self._report, stop))
        finally:
            self._done()

    def _prepare(self, count: int, stop: _Stop | None) -> None:
        try:
            self._alive().prepare(_arguments.number("count", count, 0, 2**31), self._report, stop)
        finally:
            self._done()

    async def _in_thread(self, work: Callable[[_Stop], _Result]) -> _Result:
        def work_or_stopped(stop: _Stop) -> _Result:
            try:
                return work(stop)
            except InputError:
                # It was open when this call was made.
                if self._closed:
                    raise CancelledError("the client was closed before the call was done") from None
                raise

        # In a forked child, where no thread releases the lock any more, this raises.
        self._alive()
        with self._pool_lock:
            # close() in another thread shuts the pool down before this or after.
            self._alive()
            if self._pool is None:
                self._pool = ThreadPoolExecutor(_THREADS, thread_name_prefix="blindfuse")
            started = start_in_thread(self._pool, work_or_stopped)
        return await started


def start_in_thread(pool: ThreadPoolExecutor | None, work: Callable[[_Stop], _Result]) -> Awaitable[_Result]:
    """Has a thread begin at once. A task that is cancelled while it awaits the result stops the work."""
    stop = _Stop()
    future = asyncio.get_running_loop().run_in_executor(pool, work, stop)

    async def result() -> _Result:
        try:
            return await future
        except asyncio.CancelledError:
            stop.request()
            raise

    return result()


def _several(keys: Iterable[AnyKey]) -> list[AnyKey]:
    if isinstance(keys, (str, bytes)):
        raise TypeError("several keys come as a list or another iterable; for one, use get")
    return list(keys)
