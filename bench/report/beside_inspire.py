"""InsPIRe's tables 2 to 4 and VIA's table 1: look-ups without a hint, next to both of our modes."""

import lookups
import packed
import published
import shapes
from cells import Cell, NOTHING, Number, printed, shown
from comparison import KIB, MIB, Comparison, Table, as_printed, theirs, theirs_if_any
from results import Results, of
from shapes import Shape


def shape_of(row: published.Row) -> Shape:
    """A single bit comes with 256 bytes around it."""
    return Shape("index", row["keys"], row["value_bytes"]) if "keys" in row else shapes.bit_shape(row)


TWO = "two-levels"
NAMES = {"hint": "hint mode", "packed": "packed mode", TWO: "two levels"}


def _on(results: Results, shape: Shape, kind: str) -> str:
    """The machine of packed mode's times."""
    name = packed.machine_name(results, shape, kind)
    return f", {name.removesuffix(', 1 thread')}" if name else ""


def add_ours(made: Comparison, table: Table, database: str, shape: Shape) -> None:
    """A row for each mode, and for two levels if they were measured: bytes of a look-up, bytes once an epoch, throughput, set-up."""
    plan, measured = made.results.plan(shape, "planned"), made.results.database(shape, "planned")
    if plan:
        lookup, hint = plan.number("query_bytes") + plan.number("response_bytes"), plan.number("sync_bytes")
    else:
        lookup, hint = packed.hint_mode_bytes(shape)
    results = made.results
    rows = {
        "packed": (
            packed.lookup_bytes(results, shape),
            packed.once_bytes(results, shape),
            packed.server_seconds(results, shape),
            packed.seconds(results, shape, "build", "total"),
        ),
        "hint": (lookup, hint, of(measured, "lookup", "server"), of(measured, "build", "total")),
    }
    if (two := packed.lookup_bytes(results, shape, TWO)) is not None:
        rows[TWO] = (
            two,
            packed.once_bytes(results, shape, TWO),
            packed.server_seconds(results, shape, TWO),
            packed.seconds(results, shape, "build", "total", kind=TWO),
        )
    for mode, (each, once, seconds, build) in rows.items():
        if seconds and seconds.partial:
            seconds = build = None
        table.add(
            database,
            Cell(f"**blindfuse, {NAMES[mode]}**" + (_on(results, shape, mode) if mode != "hint" else "")),
            packed.cell(each, KIB),
            packed.cell(once, MIB),
            shown(lookups.speed(shape, seconds)) if seconds else packed.NOT_MEASURED,
            shown(build) if build else packed.NOT_MEASURED,
        )


def settings(rows: list[published.Row], column: str) -> Cell:
    """A scheme's settings in one cell, as they are printed."""
    found = [theirs(row, column) for row in rows]
    return printed(found[0]) if len(found) == 1 else Cell(" / ".join(f"{each.value:.10g}" for each in found))


COLUMNS = ["database", "scheme", "a look-up, KiB", "once, MiB", "GiB/s", "set-up, s"]


def inspire(made: Comparison) -> Table:
    table = Table(
        "inspire",
        "InsPIRe, Tables 2 to 4: look-ups without a hint",
        COLUMNS,
        about=f"Theirs on {published.machine('inspire', 'table-3')}; keys, query and download of a look-up. Where a "
        "scheme has several settings, a cell has them in order. Ours: the planner's layout for 100 look-ups a "
        "client, one thread; a bit comes with 256 bytes around it.",
    )
    for key in ("table-2", "table-3", "table-4"):
        rows = published.rows("inspire", key)
        for database in dict.fromkeys(row["text"] for row in rows):
            here = [row for row in rows if row["text"] == database]
            add_ours(made, table, database, shape_of(here[0]))
            for scheme in dict.fromkeys(row["scheme"] for row in here):
                mine = [row for row in here if row["scheme"] == scheme]
                table.add(
                    database,
                    Cell(scheme),
                    settings(mine, "total_KB"),
                    NOTHING,
                    settings(mine, "throughput_GB_s"),
                    NOTHING,
                )
    return table


def via(made: Comparison) -> Table:
    table = Table(
        "via",
        "VIA, Table 1: one byte or less",
        COLUMNS,
        about=f"Theirs on {published.machine('via', 'table-1')}, by way of public notes on the paper. Once: "
        "SimplePIR's clients download a hint, Respire's and VIA-C's upload keys, which the server keeps for each. Ours "
        "as in the table above, a record of 256 bytes for the byte.",
    )
    rows = published.rows("via", "table-1")
    for size in dict.fromkeys(row["database_GB"] for row in rows):
        here = [row for row in rows if row["database_GB"] == size]
        add_ours(made, table, here[0]["text"], shape_of(here[0]))
        for row in here:
            table.add(
                row["text"],
                Cell(row["scheme"]),
                shown(theirs(row, "query_KB") + theirs(row, "response_KB")),
                as_printed(theirs_if_any(row, "offline_MB")),
                as_printed(theirs(row, "throughput_GB_s")),
                as_printed(theirs_if_any(row, "offline_s")),
            )
    return table


def tables(made: Comparison) -> list[Table]:
    return [*lookups.tables(made), inspire(made), via(made)]
