"""Databases and servers on this machine, for notebooks and tests, by the operator's program."""

from __future__ import annotations

import base64
import contextlib
import json
import os
import subprocess
import tempfile
import time
import weakref
from dataclasses import dataclass, field
from pathlib import Path
from types import TracebackType
from typing import Any, Iterable, Iterator, Mapping, NoReturn, Union

from . import _blindfuse, _program
from ._client import Client
from ._connecting import connect
from ._errors import BlindfuseError, ResourceError

Text = Union[str, bytes]
# The keys of a Mapping are invariant: one of str is none of str or bytes.
Items = Union[Mapping[str, Text], Mapping[bytes, Text], Mapping[Text, Text], Iterable["tuple[Text, Text]"]]


@dataclass(frozen=True)
class BuildReport:
    """The result of a build."""

    epoch: str
    changed: bool  # False: the database was this one already
    key_count: int
    shard_count: int
    shards_rebuilt: int
    hint_bytes: int  # a new client downloads these
    query_bytes: int
    response_bytes: int
    seconds: float
    details: Mapping[str, Any] = field(repr=False)  # all that `blindfuse build --json` prints


@dataclass(frozen=True)
class Database:
    """A database directory."""

    path: Path
    report: BuildReport

    @staticmethod
    def build(
        items: Items | Iterable[Text],
        path: str | os.PathLike[str],
        *,
        index: bool = False,
        shards: int | None = None,
        arity: int | None = None,
        mode: str | None = None,
        levels: int | None = None,
        short_key: bool = False,
        keys_per_request: int | None = None,
        params: str | None = None,
        digest_bytes: int | None = None,
        lookups_per_client: int | None = None,
        value_bytes_max: int | None = None,
        value_room: int | None = None,
        long_values: str | None = None,
        on_duplicate: str | None = None,
        fresh: bool = False,
        allow_shrink: bool = False,
        allow_padding: bool = False,
        sign: str | os.PathLike[str] | None = None,
        unsigned: bool = False,
        engine: str | None = None,
        threads: int | None = None,
    ) -> Database:
        """Makes a database directory of a mapping or of pairs, or brings the one at `path` up to date.

        Keys and values are bytes, or str, which are written as UTF-8. With `index`, items are values, and their numbers
        are their keys. Items are taken one by one, into a file next to `path`, not into memory. The rest are the
        options of `blindfuse build` of the same names (see `blindfuse build --help-all`); None leaves the choice to it. An
        error in the input or the options raises BlindfuseError, and changes nothing on disk.
        """
        options = {
            "shards": shards,
            "arity": arity,
            "mode": mode,
            "levels": levels,
            "keys-per-request": keys_per_request,
            "params": params,
            "digest-bytes": digest_bytes,
            "lookups-per-client": lookups_per_client,
            "value-bytes-max": value_bytes_max,
            "value-room": value_room,
            "long-values": long_values,
            "on-duplicate": on_duplicate,
            "sign": None if sign is None else os.fspath(sign),
            "engine": engine,
            "threads": threads,
        }
        arguments = ["build", "-", "--json", "--format", "tsv"]
        arguments += ["--key-encoding", "base64", "--value-encoding", "base64"]
        arguments += ["--output", os.fspath(path), *_arguments(options)]
        arguments += ["--index"] * bool(index) + ["--fresh"] * bool(fresh)
        arguments += ["--allow-shrink"] * bool(allow_shrink) + ["--allow-padding"] * bool(allow_padding)
        arguments += ["--unsigned"] * bool(unsigned) + ["--short-key"] * bool(short_key)
        report = json.loads(_build(arguments, _lines(items, index), Path(path).absolute().parent))
        layout = report["layout"]
        return Database(
            Path(path),
            BuildReport(
                epoch=report["epoch"],
                changed=report["changed"],
                key_count=layout["key_count"],
                shard_count=layout["shard_count"],
                shards_rebuilt=report["shards_rebuilt"],
                hint_bytes=layout["hint_bytes"],
                query_bytes=layout["query_bytes"],
                response_bytes=layout["response_bytes"],
                seconds=report["seconds"]["total"],
                details=report,
            ),
        )

    def serve(self, **options: Any) -> Server:
        """`blindfuse.serve` of this database."""
        return serve(self.path, **options)


class Server:
    """A server that runs until stop(), the end of a `with`, or the end of this process."""

    def __init__(self, process: subprocess.Popen[bytes], folder: tempfile.TemporaryDirectory[str], url: str) -> None:
        """Use `blindfuse.serve`."""
        self._process = process
        self._folder = folder
        self._url = url
        self._end = weakref.finalize(self, _end, process, folder, _blindfuse.ProcessToken.current())

    @property
    def url(self) -> str:
        return self._url

    @property
    def pid(self) -> int:
        return self._process.pid

    @property
    def running(self) -> bool:
        return self._end.alive and self._process.poll() is None

    @property
    def log(self) -> str:
        """The server's log: warnings and errors."""
        return _read(Path(self._folder.name) / "log") if self._end.alive else ""

    def connect(self, **options: Any) -> Client:
        """`blindfuse.connect` to this server."""
        return connect(self._url, **options)

    def stop(self) -> None:
        """Answers the requests that have begun, then ends the server. A second call does nothing."""
        self._end()

    def __enter__(self) -> Server:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.stop()

    def __repr__(self) -> str:
        return f"<blindfuse.Server {self._url}{'' if self._end.alive else ', stopped'}>"

    def __reduce__(self) -> NoReturn:
        raise TypeError("a Server cannot be pickled or copied; pass its url on")


def serve(
    path: str | os.PathLike[str] | Database,
    *,
    listen: str = "127.0.0.1:0",
    engine: str | None = None,
    threads: int | None = None,
    arguments: Iterable[str] = (),
    timeout: float = 600,
) -> Server:
    """Serves a database directory, and returns once it answers.

    listen: HOST:PORT; port 0 is any that is free
    engine, threads, arguments: options of `blindfuse serve`; see `blindfuse serve --help`
    timeout: seconds that it may take to load the database
    """
    directory = path.path if isinstance(path, Database) else path
    folder = tempfile.TemporaryDirectory(prefix="blindfuse-")
    ready = Path(folder.name) / "url"
    command = ["serve", os.fspath(directory), "--listen", listen, "--ready-file", str(ready), "--log-level", "warning"]
    command += [*_arguments({"engine": engine, "threads": threads}), *arguments]
    try:
        with open(Path(folder.name) / "log", "wb") as log:
            process = _program.start_with_this_process(command, log)
        try:
            return Server(process, folder, _wait_for(ready, process, timeout))
        except BaseException:
            _program.stop(process, timeout=5)
            raise
    except BaseException:
        folder.cleanup()
        raise


def _wait_for(ready: Path, process: subprocess.Popen[bytes], timeout: float) -> str:
    end = time.monotonic() + timeout
    while not (url := _read(ready).strip()):
        if process.poll() is not None:
            raise _program.failure("the server did not start", _read(ready.parent / "log"))
        if time.monotonic() > end:
            raise BlindfuseError(f"the server did not load the database in {timeout} s; give it a longer timeout=")
        time.sleep(0.01)
    return url


def _end(
    process: subprocess.Popen[bytes], folder: tempfile.TemporaryDirectory[str], owner: _blindfuse.ProcessToken
) -> None:
    # A forked child has the server, but must not stop it.
    if owner.is_current():
        _program.stop(process, timeout=30)
        folder.cleanup()


def _read(path: Path) -> str:
    try:
        return path.read_text(errors="replace")
    except FileNotFoundError:
        return ""


def _arguments(options: Mapping[str, object]) -> list[str]:
    return [text for name, value in options.items() if value is not None for text in (f"--{name}", str(value))]


def _lines(items: Items | Iterable[Text], index: bool) -> Iterator[bytes]:
    """The program's input: base64 can hold any bytes."""
    if isinstance(items, (str, bytes)):
        raise TypeError("items are a mapping or pairs; this is one str or bytes")
    if index:
        if isinstance(items, Mapping):
            raise TypeError("with index=True items are values, in the order of their numbers, not a mapping")
        for value in items:
            yield _base64(value, "value") + b"\n"
        return
    for pair in items.items() if isinstance(items, Mapping) else items:
        if isinstance(pair, (str, bytes)) or len(pair) != 2:
            raise TypeError("items are pairs of key and value, or a mapping; for values alone, say index=True")
        yield _base64(pair[0], "key") + b"\t" + _base64(pair[1], "value") + b"\n"


def _base64(text: object, what: str) -> bytes:
    if isinstance(text, str):
        text = text.encode()
    if not isinstance(text, bytes):
        raise TypeError(f"a {what} is str or bytes, not {type(text).__name__}; convert it")
    return base64.b64encode(text)


def _build(arguments: list[str], lines: Iterator[bytes], folder: Path) -> bytes:
    """The program's output for these lines. They wait in a file until all are there: the end of a pipe would look the
    same to it when this process dies half way."""
    writing = _Writing(folder)
    with writing:
        folder.mkdir(parents=True, exist_ok=True)
        spool = tempfile.TemporaryFile(dir=folder)
    try:
        # An exception of the caller's items is the caller's, even if it is an OSError.
        for line in lines:
            with writing:
                spool.write(line)
        with writing:
            spool.flush()
            spool.seek(0)
        done = _program.run(arguments, spool)
    finally:
        # Data is left to write only after an error, and that error is the one to report.
        with contextlib.suppress(OSError):
            spool.close()
    if done.returncode != 0:
        raise _program.failure("no database was built", done.stderr.decode(errors="replace"))
    return done.stdout


class _Writing:
    """While the items are written: what fails then is the machine's."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    def __enter__(self) -> None:
        pass

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if isinstance(error, OSError):
            raise ResourceError(
                f"cannot write to {self._folder}, which takes a copy of the items while they are read: "
                f"{error.strerror}; make room there, or build elsewhere"
            ) from error
