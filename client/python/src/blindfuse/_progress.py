"""How far a client is: to a function of the caller's, or to the terminal by tqdm."""

from __future__ import annotations

import importlib
import sys
import threading
from dataclasses import dataclass
from typing import Any, Callable

from ._errors import InputError

# Each stage of the library, in order: its name, what a person reads, and the unit of its amounts.
_STAGES = (
    ("waiting for lock", "waiting for another client that fetches these hints", ""),
    ("fetching hints", "fetching hints", "B"),
    ("preparing queries", "preparing queries", " rows"),
    ("waiting for server", "the server is busy; waiting", ""),
    ("waiting for answer", "waiting for the answer", ""),
    ("checking hints", "checking the hints on disk", "B"),
    ("decoding answers", "decoding answers", " keys"),
)


@dataclass(frozen=True)
class Progress:
    """How far a call is. The length of the stages "waiting for lock", "waiting for server" and "waiting for answer" is
    unknown: both amounts are 0."""

    stage: str
    # "fetching hints", "checking hints": bytes; "preparing queries": rows of the database; "decoding answers": keys
    done: int
    total: int


ProgressCallback = Callable[[Progress], object]
Report = Callable[[int, int, int], None]


class TerminalBar:
    """A bar for each stage that lasts long enough to be seen. Calls of several threads share it."""

    def __init__(self, make_bar: Callable[..., Any]) -> None:
        self._make_bar = make_bar
        self._lock = threading.Lock()
        self._stage: int | None = None
        self._bar: Any = None

    def __call__(self, stage: int, done: int, total: int) -> None:
        # Every gap in a download is such a wait: the bar stays.
        if _STAGES[stage][0] == "waiting for answer":
            return
        # A signal handler may interrupt a report to make another call: that one shows nothing.
        if not self._lock.acquire(blocking=False):
            return
        try:
            if stage != self._stage:
                self._close()
                self._open(stage, total)
            if total:
                self._bar.update(max(0, done - self._bar.n))
                if done >= total:
                    self._close()
            else:
                self._bar.refresh()
        finally:
            self._lock.release()

    def clear(self) -> None:
        if self._bar is None or not self._lock.acquire(blocking=False):
            return
        try:
            self._close()
        finally:
            self._lock.release()

    def _open(self, stage: int, total: int) -> None:
        _, words, unit = _STAGES[stage]
        if total:
            style: dict[str, Any] = {"total": total, "unit": unit, "unit_scale": True}
        else:
            style = {"total": None, "bar_format": "{desc} {elapsed}"}
        self._bar = self._make_bar(desc=words, leave=False, delay=0.3, file=sys.stderr, **style)
        self._stage = stage

    def _close(self) -> None:
        if self._bar is not None:
            self._bar.close()
        self._bar = None
        self._stage = None


def _tqdm() -> Callable[..., Any] | None:
    try:
        make_bar: Callable[..., Any] = importlib.import_module("tqdm").tqdm
    except ImportError:
        return None
    return make_bar


def report_to(progress: object) -> Report | None:
    """What the library shall call. None: a bar where there is a terminal and tqdm; True: a bar in any case."""
    if progress is False:
        return None
    if callable(progress):
        callback = progress

        def report(stage: int, done: int, total: int) -> None:
            callback(Progress(_STAGES[stage][0], done, total))

        return report
    if progress is not None and progress is not True:
        raise TypeError("progress= takes True, False, None or a function of a blindfuse.Progress")
    if progress is None and not (sys.stderr is not None and sys.stderr.isatty()):
        return None
    bar = _tqdm()
    if bar is None and progress is True:
        raise InputError("progress=True needs tqdm: pip install 'blindfuse[progress]'")
    return None if bar is None else TerminalBar(bar)
