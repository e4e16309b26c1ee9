"""Numbers that know where they were read, and cells that show them."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Mapping


@dataclasses.dataclass(frozen=True)
class Number:
    value: float
    # What it was computed from, by place: FILE#PLACE. A test holds these values against the files.
    read: Mapping[str, float]
    # Of fewer keys than were asked for: shown as such, and compared with nothing.
    partial: bool = False

    def _computed(self, value: float, other: Number | float) -> Number:
        if isinstance(other, Number):
            return Number(value, {**self.read, **other.read}, self.partial or other.partial)
        return Number(value, self.read, self.partial)

    def __truediv__(self, other: Number | float) -> Number:
        return self._computed(self.value / float(other), other)

    def __mul__(self, other: Number | float) -> Number:
        return self._computed(self.value * float(other), other)

    def __add__(self, other: Number | float) -> Number:
        return self._computed(self.value + float(other), other)

    def __float__(self) -> float:
        return float(self.value)

    @property
    def place(self) -> str | None:
        """Where this very number stands; None where it was computed."""
        (place, value), *others = self.read.items() or [(None, None)]
        return place if not others and value == self.value else None


def read(value: float, place: str) -> Number:
    return Number(float(value), {place: float(value)})


@dataclasses.dataclass(frozen=True)
class Cell:
    text: str
    # None for labels. In the unit of the text, so that the digits can be compared.
    number: Number | None = None


NOTHING = Cell("–")


def digits(value: float, count: int = 3) -> str:
    """This many significant digits, without an exponent, thousands apart."""
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


def decimal_size(number: Number | None) -> Cell:
    """In powers of 1000, as transfers are paid for."""
    return _chosen(number, [(1e9, "GB"), (1e6, "MB"), (1e3, "kB"), (1, "B")])


def ratio(number: Number | None) -> Cell:
    return shown(number)


def dollars(number: Number | None) -> Cell:
    if number is None:
        return NOTHING
    return Cell(f"${digits(number.value)}", number)
