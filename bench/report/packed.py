"""What is known of packed mode: bytes as planned, and the server's time of one query where it was measured."""

import published
from cells import Cell, Number, shown
from comparison import Unit, theirs, theirs_if_any
from shapes import Shape

NOT_MEASURED = Cell("not measured")
KB_DECIMAL = 1000


def _row(shape: Shape) -> published.Row | None:
    """The one of this shape, with the default LWE parameters and arity."""
    for row in published.rows("packed", "look-ups"):
        if shape == Shape(row["kind"], row["keys"], row["value_bytes"]):
            return row
    return None


def lookup_bytes(shape: Shape) -> Number | None:
    """Of a query with its packing keys, and of its response."""
    row = _row(shape)
    return theirs(row, "lookup_kB") * KB_DECIMAL if row else None


def once_bytes(shape: Shape) -> Number | None:
    """What a client downloads once an epoch."""
    row = _row(shape)
    return theirs(row, "once_kB") * KB_DECIMAL if row else None


def hint_mode_bytes(shape: Shape) -> tuple[Number | None, Number | None]:
    """The same plan in hint mode: bytes of a look-up, and once an epoch."""
    row = _row(shape)
    if row is None:
        return None, None
    return theirs(row, "hint_mode_lookup_kB") * KB_DECIMAL, theirs(row, "hint_mode_once_MB") * KB_DECIMAL**2


def server_seconds(shape: Shape) -> Number | None:
    row = _row(shape)
    milliseconds = theirs_if_any(row, "server_ms") if row else None
    return milliseconds / 1000 if milliseconds else None


def cell(number: Number | None, unit: Unit) -> Cell:
    return shown(number, per_unit=unit.size) if number else NOT_MEASURED
