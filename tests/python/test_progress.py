"""What a terminal shows."""

from __future__ import annotations

import io
from typing import Any

import pytest

import blindfuse
from blindfuse._progress import _STAGES, TerminalBar

STAGES = {name: number for number, (name, _, _) in enumerate(_STAGES)}


class Bars:
    """In place of tqdm: what was opened, how far it came, and whether it is still there."""

    def __init__(self) -> None:
        self.all: list[Bar] = []

    def __call__(self, desc: str, total: int | None, **style: Any) -> Bar:
        self.all.append(Bar(desc))
        return self.all[-1]


class Bar:
    def __init__(self, words: str) -> None:
        self.words = words
        self.n = 0
        self.is_open = True

    def update(self, amount: int) -> None:
        self.n += amount

    def refresh(self) -> None:
        pass

    def close(self) -> None:
        self.is_open = False


def test_a_gap_in_a_download_leaves_its_bar_alone() -> None:
    bars = Bars()
    report = TerminalBar(bars)
    report(STAGES["waiting for answer"], 0, 0)
    assert bars.all == []
    for done in (10, 20, 30):
        report(STAGES["fetching hints"], done, 100)
        report(STAGES["waiting for answer"], 0, 0)
    (bar,) = bars.all
    assert bar.is_open and bar.n == 30
    report.clear()
    assert not bar.is_open


def test_what_is_done_is_not_shown_while_the_answer_is_waited_for() -> None:
    bars = Bars()
    report = TerminalBar(bars)
    report(STAGES["preparing queries"], 50, 100)
    report(STAGES["preparing queries"], 100, 100)
    report(STAGES["waiting for answer"], 0, 0)
    (bar,) = bars.all
    assert bar.n == 100 and not bar.is_open


def test_every_stage_has_its_bar() -> None:
    bars = Bars()
    report = TerminalBar(bars)
    for name, number in STAGES.items():
        report(number, 0, 0 if name.startswith("waiting") else 10)
    assert len(bars.all) == len(STAGES) - 1
    assert [bar.is_open for bar in bars.all] == [False] * (len(bars.all) - 1) + [True]


def test_tqdm_takes_what_it_is_given(
    server: blindfuse.Server, cache: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    pytest.importorskip("tqdm")
    monkeypatch.setattr("sys.stderr", io.StringIO())
    with server.connect(cache=cache, progress=True) as words:
        words.sync(verify=True)
        assert words.get("word 1") == b"meaning 1"
