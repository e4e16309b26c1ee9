"""Numbers that know where they come from, and cells that show them.

A number's source is a JSON value: {"at": "FILE#PLACE"} for one that stands in a file, {"is": 16, "why": ...} for a
constant, {"op": "/", "of": [a, b]} for what was computed of others. `evaluate` computes a source again from the files,
so that a test can hold every cell against them."""

from __future__ import annotations

import dataclasses
import math
import operator
from typing import Any, Callable

Source = dict[str, Any]
OPERATIONS: dict[str, Callable[[float, float], float]] = {
    "/": operator.truediv,
    "*": operator.mul,
    "+": operator.add,
    "-": operator.sub,
}


@dataclasses.dataclass(frozen=True)
class Number:
    value: float
    source: Source
    # Of fewer keys than were asked for: shown as such, and compared with nothing.
    partial: bool = False

    def _with(self, op: str, other: Number | float) -> Number:
        right = other if isinstance(other, Number) else constant(other)
        return Number(
            OPERATIONS[op](self.value, right.value),
            {"op": op, "of": [self.source, right.source]},
            self.partial or right.partial,
        )

    def __truediv__(self, other: Number | float) -> Number:
        return self._with("/", other)

    def __mul__(self, other: Number | float) -> Number:
        return self._with("*", other)

    def __add__(self, other: Number | float) -> Number:
        return self._with("+", other)


def constant(value: float, why: str = "unit") -> Number:
    return Number(value, {"is": value, "why": why})


def evaluate(source: Source, look_up: Callable[[str], float]) -> float:
    if "at" in source:
        return look_up(source["at"])
    if "is" in source:
        return source["is"]
    left, right = (evaluate(each, look_up) for each in source["of"])
    return OPERATIONS[source["op"]](left, right)


def places_of(source: Source) -> set[str]:
    """The places that a number was computed from."""
    if "at" in source:
        return {source["at"]}
    return {place for each in source.get("of", []) for place in places_of(each)}


@dataclasses.dataclass(frozen=True)
class Cell:
    text: str
    # None for labels. In the unit of the text, so that the digits can be compared.
    number: Number | None = None

    def json(self) -> Any:
        if self.number is None:
            return self.text
        return {"text": self.text, "value": self.number.value, "from": self.number.source}


NOTHING = Cell("–")


def digits(value: float, count: int = 3) -> str:
    """So many significant digits, without an exponent, thousands apart."""
    if value == 0 or not math.isfinite(value):
        return f"{value:g}"
    places = count - 1 - math.floor(math.log10(abs(value)))
    rounded = round(value, places)
    return f"{rounded:,.{max(0, places)}f}"


def printed(number: Number, unit: str = "") -> Cell:
    """As a paper prints it, all digits."""
    text = f"{number.value:.10g}" if number.value < 1e-3 or number.value >= 1e15 else f"{number.value:,.10g}"
    return Cell(f"{text} {unit}".strip(), number)


def shown(number: Number | None, unit: str = "", per_unit: float = 1) -> Cell:
    if number is None:
        return NOTHING
    scaled = number if per_unit == 1 else number / per_unit
    return Cell(f"{digits(scaled.value)} {unit}".strip(), scaled)


def count(number: Number | None) -> Cell:
    """Of things, all digits."""
    return NOTHING if number is None else Cell(f"{number.value:,.0f}", number)


def _chosen(number: Number | None, units: list[tuple[float, str]]) -> Cell:
    """In the largest unit of which there is one at least."""
    if number is None:
        return NOTHING
    per_unit, unit = next(((size, name) for size, name in units if abs(number.value) >= size), units[-1])
    return shown(number, unit, per_unit)


def seconds(number: Number | None) -> Cell:
    return _chosen(number, [(1, "s"), (1e-3, "ms"), (1e-6, "µs")])


def size(number: Number | None) -> Cell:
    """In powers of 1024, as the papers have them."""
    return _chosen(number, [(1024**3, "GiB"), (1024**2, "MiB"), (1024, "KiB"), (1, "B")])


def ratio(number: Number | None) -> Cell:
    return shown(number)


def dollars(number: Number | None) -> Cell:
    if number is None:
        return NOTHING
    return Cell(f"${digits(number.value)}", number)
