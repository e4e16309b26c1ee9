"""What a megabyte of a client's transfers buys, in each mode: planned, and so the same on every machine."""

from cells import Number, decimal_size, shown
from comparison import Comparison, Table
from results import Result
from shapes import Shape, mobile_shapes

MEGABYTE = 1e6
# A column's name, the mode, the number of levels, and the largest packing tables, in matrices.
KINDS = (
    ("hint mode", "hint", 1, 1),
    ("packed", "packed", 1, 1),
    ("two levels", "packed", 2, 1),
    ("two levels, twice the tables", "packed", 2, 2),
)


def lookups(found: Result | None) -> Number | None:
    """In a megabyte of queries and responses."""
    if found is None:
        return None
    return Number(MEGABYTE, {}) / (found.number("query_bytes") + found.number("response_bytes"))


def a_megabyte(made: Comparison) -> Table:
    table = Table(
        "megabyte",
        "Look-ups by key in a megabyte of transfers",
        ["keys x value", *(name for name, *_ in KINDS), *(f"once: {name}" for name, *_ in KINDS)],
        about="A megabyte is a million bytes, up and down together. Once: what a client downloads in each epoch in "
        "addition, all hints or masks and the tables. Planned for 100 look-ups a client and epoch. In packed mode "
        "the server keeps packing tables of at most as many bytes as the matrix, and in the last column of each half "
        "at most twice as many; up to 256 MiB they never count as too many. Two levels are with or without a short "
        "key, whichever takes fewer bytes.",
    )
    for shape in mobile_shapes():
        file = made.results.find(f"compared.{shape.name}.json")
        if file is None:
            continue
        found = [made.results.compared(shape, mode, levels, matrices) for _, mode, levels, matrices in KINDS]
        once = [each.number("sync_bytes") if each else None for each in found]
        table.add(f"{shape.label}{file.reduced}", *map(shown, map(lookups, found)), *map(decimal_size, once))
    return table


def tables(made: Comparison) -> list[Table]:
    return [a_megabyte(made)]
