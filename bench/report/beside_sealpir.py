"""SealPIR's figure 9, with XPIR's figures in it: 2^16 to 2^20 elements of 288 bytes."""

import packed
import published
from cells import Cell, NOTHING, Number
from comparison import KIB, MS, S, Comparison, Table, as_printed, theirs, theirs_if_any
from results import of
from shapes import Shape

PAPER = "sealpir"
TITLE = "SealPIR, Figure 9: bytes and processor time"


def server(row: published.Row) -> Number:
    """SealPIR's server expands a query before it answers it."""
    expand = theirs_if_any(row, "expand_s")
    answer = theirs(row, "answer_s")
    return answer + expand if expand else answer


def in_both_modes(made: Comparison, shape: Shape, *steps: str) -> tuple[Number | None, Number | None]:
    """A time of a measured database, in hint mode and in packed mode."""
    return of(made.results.database(shape, "planned"), *steps), packed.seconds(made.results, shape, *steps)


def tables(made: Comparison) -> list[Table]:
    table = Table(
        PAPER,
        TITLE,
        [
            "keys x value",
            "what",
            "XPIR, d = 2",
            "XPIR, d = 3",
            "SealPIR, d = 2",
            "ours, hint mode",
            "ours / SealPIR's",
            "ours, packed mode",
        ],
        about=f"Theirs on {published.machine(PAPER, 'figure-9')}: processor time; SealPIR's server time includes the "
        "expansion of the query. Neither downloads anything before a look-up. Ours by number, one thread, the "
        "planner's layout for 100 look-ups a client.",
    )
    rows = published.rows(PAPER, "figure-9")
    for keys in sorted({row["keys"] for row in rows}):
        xpir2, xpir3, seal = (row for row in rows if row["keys"] == keys)
        shape = Shape("index", keys, seal["value_bytes"])
        plan = made.results.plan(shape, "planned")
        results = made.results
        for what, unit, found, ours, ours_packed in (
            (
                "query",
                KIB,
                lambda row: theirs(row, "query_KB"),
                of(plan, "query_bytes"),
                packed.query_bytes(results, shape),
            ),
            (
                "response",
                KIB,
                lambda row: theirs(row, "answer_KB"),
                of(plan, "response_bytes"),
                packed.response_bytes(results, shape),
            ),
            ("server time", S, server, *in_both_modes(made, shape, "lookup", "server")),
            ("set-up", S, lambda row: theirs(row, "setup_s"), *in_both_modes(made, shape, "build", "total")),
            ("query prepared", MS, lambda row: theirs(row, "query_ms"), *in_both_modes(made, shape, "lookup", "prepare")),
            ("parsing", MS, lambda row: theirs(row, "extract_ms"), *in_both_modes(made, shape, "lookup", "decode")),
        ):
            compared = made.cells(table, seal["text"], what, found(seal), ours, unit)
            table.add(
                seal["text"],
                Cell(f"{what}, {unit.name}"),
                as_printed(found(xpir2)),
                as_printed(found(xpir3)),
                compared[0],
                compared[1] if ours else packed.NOT_MEASURED,
                compared[2],
                packed.cell(ours_packed, unit),
            )
        table.add(
            seal["text"],
            Cell("once an epoch, KiB"),
            *[NOTHING] * 3,
            packed.cell(of(plan, "sync_bytes"), KIB),
            NOTHING,
            packed.cell(packed.once_bytes(results, shape), KIB),
        )
    return [table]
