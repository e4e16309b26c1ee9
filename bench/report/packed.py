"""Packed mode: as it was measured, or else as it is in bench/published/packed.json, planned or measured by hand. With the
kind "two-levels": as it was measured."""

import machine
import published
from cells import Cell, Number, shown
from comparison import Unit, theirs, theirs_if_any
from results import Result, Results
from shapes import Shape

NOT_MEASURED = Cell("not measured")
KB_DECIMAL = 1000


def _measured(results: Results, shape: Shape, kind: str) -> Result | None:
    found = results.packed(shape, kind)
    return None if found is None or found.reduced else found


def _row(shape: Shape, kind: str = "packed") -> published.Row | None:
    """The one of this shape, with the default LWE parameters and arity."""
    if kind != "packed":
        return None
    for row in published.rows("packed", "look-ups"):
        if shape == Shape(row["kind"], row["keys"], row["value_bytes"]):
            return row
    return None


def query_bytes(results: Results, shape: Shape) -> Number | None:
    """With its packing keys."""
    found = _measured(results, shape, "packed")
    return found.number("lookup_bytes", "query") if found else None


def response_bytes(results: Results, shape: Shape) -> Number | None:
    found = _measured(results, shape, "packed")
    return found.number("lookup_bytes", "response") if found else None


def lookup_bytes(results: Results, shape: Shape, kind: str = "packed") -> Number | None:
    """Of a query with its packing keys, and of its response."""
    if found := _measured(results, shape, kind):
        return found.number("lookup_bytes", "query") + found.number("lookup_bytes", "response")
    row = _row(shape, kind)
    return theirs(row, "lookup_kB") * KB_DECIMAL if row else None


def once_bytes(results: Results, shape: Shape, kind: str = "packed") -> Number | None:
    """What a client downloads once an epoch."""
    if found := _measured(results, shape, kind):
        return found.number("sync", "bytes")
    row = _row(shape, kind)
    return theirs(row, "once_kB") * KB_DECIMAL if row else None


def hint_mode_bytes(shape: Shape) -> tuple[Number | None, Number | None]:
    """The same plan in hint mode: bytes of a look-up, and once an epoch."""
    row = _row(shape)
    if row is None:
        return None, None
    return theirs(row, "hint_mode_lookup_kB") * KB_DECIMAL, theirs(row, "hint_mode_once_MB") * KB_DECIMAL**2


def seconds(results: Results, shape: Shape, *steps: str, kind: str = "packed") -> Number | None:
    """A time of a measured database: "lookup", "server", for example."""
    found = _measured(results, shape, kind)
    return found.number(*steps) if found else None


def server_seconds(results: Results, shape: Shape, kind: str = "packed") -> Number | None:
    if found := seconds(results, shape, "lookup", "server", kind=kind):
        return found
    row = _row(shape, kind)
    milliseconds = theirs_if_any(row, "server_ms") if row else None
    return milliseconds / 1000 if milliseconds else None


def machine_name(results: Results, shape: Shape, kind: str = "packed") -> str | None:
    """The machine of the times, with its number of threads; None where there are none."""
    if found := _measured(results, shape, kind):
        return f"{machine.name(found.content['machine'])}, 1 thread"
    return published.machine("packed", "look-ups") if server_seconds(results, shape, kind) else None


def cell(number: Number | None, unit: Unit) -> Cell:
    return shown(number, per_unit=unit.size) if number else NOT_MEASURED
