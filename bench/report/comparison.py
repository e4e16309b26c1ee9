"""Tables that compare peers' figures with ours, and what they say about who is better."""

from __future__ import annotations

import dataclasses
import json
import pathlib
from functools import cache

import published
from cells import NOTHING, Cell, Number, printed, ratio, read, shown
from results import Results

REASONS: dict[str, str] = json.loads((pathlib.Path(__file__).parent / "reasons.json").read_text())


MARK = "\\*"


@dataclasses.dataclass
class Table:
    block: str  # the markers in the document that it stands between
    title: str
    columns: list[str]
    rows: list[list[Cell]] = dataclasses.field(default_factory=list)
    about: str = ""  # what is compared, and what differs

    def add(self, label: str, *cells: Cell) -> None:
        self.rows.append([Cell(label), *cells])

    @property
    def explained(self) -> str:
        """What is compared, with what its marks mean."""
        marked = any(cell.text.endswith(MARK) for row in self.rows for cell in row)
        return self.about + (
            " A star: the paper's own figures contradict this one; bench/published says how." if marked else ""
        )

    @property
    def results(self) -> list[str]:
        """The files with results that its numbers come from: KIND/NAME."""
        numbers = [cell.number for row in self.rows for cell in row if cell.number]
        paths = {place.partition("#")[0] for number in numbers for place in number.read}
        return [path.removeprefix("results/") for path in sorted(paths) if path.startswith("results/")]


@dataclasses.dataclass(frozen=True)
class Worse:
    """One cell in which ours is slower or larger."""

    table: str
    what: str
    row: str
    ratio: Number


@dataclasses.dataclass(frozen=True)
class Unit:
    name: str
    size: float = 1  # in seconds, bytes, bytes a second


KIB, MIB, GIB = Unit("KiB", 1024), Unit("MiB", 1024**2), Unit("GiB", 1024**3)
MS, S = Unit("ms", 1e-3), Unit("s")
MB_DECIMAL = Unit("MB", 1e6)


class Comparison:
    """Makes the cells of one kind of machine's tables, and remembers where ours is worse."""

    def __init__(self, results: Results) -> None:
        self.results = results
        self.worse: list[Worse] = []

    def columns(self, *names: str) -> list[str]:
        return [text for name in names for text in (f"{name}: theirs", "ours", "ours / theirs")]

    def cells(
        self,
        table: Table,
        row: str,
        what: str,
        theirs: Number | None,
        ours: Number | None,
        unit: Unit,
        more_is_better: bool = False,
    ) -> list[Cell]:
        """Theirs as it is printed, ours in the same unit, and the ratio."""
        if theirs is None or ours is None or ours.partial or misleading(theirs):
            return [as_printed(theirs), shown(ours, per_unit=unit.size), NOTHING]
        quotient = ours / (theirs * unit.size) if unit.size != 1 else ours / theirs
        if (quotient.value < 1) if more_is_better else (quotient.value > 1):
            self.worse.append(Worse(table.title, what, row, quotient))
        return [as_printed(theirs), shown(ours, per_unit=unit.size), ratio(quotient)]


def theirs_if_any(row: published.Row, column: str) -> Number | None:
    """A published figure, as it is printed; None where there is none."""
    value = row[column]
    return None if value is None else read(value, f"{row['where']}.{column}")


def theirs(row: published.Row, column: str) -> Number:
    found = theirs_if_any(row, column)
    assert found is not None, f"{row['where']} has no {column}"
    return found


@cache
def _contradicted() -> dict[str, float]:
    """Cells of papers that the papers' other figures contradict, with how far from those they are."""
    found = {}
    for name in ("chalametpir", "frodopir", "ypir", "inspire", "via", "sealpir", "peers", "packed"):
        for entry in published.document(name)["inconsistencies"]:
            apart = abs(entry["printed"] / entry["expected"] - 1) if entry["expected"] else float("inf")
            found[f"published/{name}.json#{entry['where']}"] = apart
    return found


def misleading(number: Number) -> bool:
    """Whether a ratio to that would be one to a misprint."""
    return any(_contradicted().get(place, 0) > 0.05 for place in number.read)


def as_printed(number: Number | None) -> Cell:
    """A paper's figure with all its digits, marked where the paper contradicts it; what was computed of several, with
    three."""
    if number is None:
        return NOTHING
    if number.place is None:
        return shown(number)
    cell = printed(number)
    return Cell(cell.text + MARK, number) if number.place in _contradicted() else cell


def reason_of(worse: Worse) -> str | None:
    """Why, by table and column or by column alone."""
    return REASONS.get(f"{worse.table}: {worse.what}") or REASONS.get(worse.what)


def worse_table(found: list[Worse]) -> Table:
    """Everything in which ours is slower or larger, the worst first, with the reason."""
    table = Table(
        "slower", "The worst first", ["table", "what", "rows", "the worst, ours / theirs", "reason"]
    )
    groups: dict[tuple[str, str], list[Worse]] = {}
    for each in found:
        groups.setdefault((each.table, each.what), []).append(each)

    def factor(each: Worse) -> float:
        return max(each.ratio.value, 1 / each.ratio.value)

    ordered = sorted(groups.values(), key=lambda group: -max(map(factor, group)))
    for group in ordered:
        worst = max(group, key=factor)
        rows = "; ".join(dict.fromkeys(each.row for each in group))
        table.rows.append(
            [
                Cell(worst.table),
                Cell(worst.what),
                Cell(rows),
                ratio(worst.ratio),
                Cell(reason_of(worst) or "**no reason is written in bench/report/reasons.json**"),
            ]
        )
    return table
