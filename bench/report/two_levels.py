"""Databases with two levels of packed responses: their bytes as they were measured, and one level and two in a database
that fills a machine's memory."""

import shapes
from cells import Cell, decimal_size, seconds, shown
from comparison import Comparison, Table
from results import Result
from shapes import Shape


def wire(made: Comparison) -> Table:
    table = Table(
        "two-levels-wire",
        "Two levels on the wire",
        ["database", "tables at most", "rows x columns", "matrix", "tables", "query", "response", "a look-up", "once",
         "server, alone"],
        about="Bytes as the client counted them in look-ups over HTTP; the server's time on one thread. Tables at most: "
        "the limit for packing tables, in matrices (up to 256 MiB they never count as too many). Once: masks and tables "
        "of an epoch.",
    )
    tasks = [(shape, 1, "") for shape in shapes.two_level_shapes()]
    tasks += [(shape, matrices, f".{matrices}-matrices") for shape, matrices in shapes.wire_shapes()]
    for shape, matrices, suffix in sorted(tasks, key=lambda each: (-each[0].raw_bytes, each[0].name, each[1])):
        found = made.results.find(f"two-levels.{shape.name}{suffix}.json")
        if found is None or found.reduced:
            continue
        query, response = (found.number("lookup_bytes", name) for name in ("query", "response"))
        table.add(
            label(shape),
            Cell(str(matrices)),
            Cell(f"{found.figures['layout']['row_count']:,} x {found.figures['layout']['column_count']:,}"),
            decimal_size(found.number("layout", "matrix_bytes")),
            decimal_size(found.number("layout", "packing_table_bytes")),
            decimal_size(query),
            decimal_size(response),
            decimal_size(query + response),
            decimal_size(found.number("sync", "bytes")),
            seconds(found.number("lookup", "server")),
        )
    return table


def label(shape: Shape) -> str:
    asked = "by key" if shape.kind == "keyword" else "by number"
    return f"{shape.label}, {asked}"


# Of a row: its name, and its cells in a database of one level and of two.
ROWS = (
    ("matrix", lambda found: decimal_size(found.number("layout", "matrix_bytes"))),
    ("packing tables", lambda found: decimal_size(found.number("layout", "packing_table_bytes"))),
    ("build", lambda found: seconds(found.number("build", "total"))),
    ("memory of the build", lambda found: decimal_size(found.number("build", "peak_bytes"))),
    ("directory on disk", lambda found: decimal_size(found.number("directory_bytes"))),
    ("memory of the server", lambda found: decimal_size(found.number("server_resident_bytes"))),
    ("once: masks and tables", lambda found: decimal_size(found.number("sync", "bytes"))),
    ("once: time", lambda found: seconds(found.number("sync", "seconds"))),
    ("query", lambda found: decimal_size(found.number("lookup_bytes", "query"))),
    ("response", lambda found: decimal_size(found.number("lookup_bytes", "response"))),
    ("a look-up", lambda found: decimal_size(found.number("lookup_bytes", "query") + found.number("lookup_bytes", "response"))),
    ("look-up of the native client", lambda found: seconds(found.number("lookup", "total"))),
    ("of which making the query", lambda found: seconds(found.number("lookup", "prepare"))),
    ("of which decoding", lambda found: seconds(found.number("lookup", "decode"))),
    ("memory of the native client", lambda found: decimal_size(found.number("lookup", "client_peak_bytes"))),
    ("look-up of the browser", lambda found: browser(found, "total")),
    ("of which making the query", lambda found: browser(found, "prepare")),
    ("of which decoding", lambda found: browser(found, "decode")),
    ("look-ups a second, 32 clients", lambda found: shown(found.number("lookups_per_second"))),
)


def browser(found: Result, stage: str) -> Cell:
    if "browser" not in found.figures:
        return Cell("not measured")
    return seconds(found.number("browser", "browser", stage, "median"))


def large(made: Comparison) -> Table:
    table = Table(
        "large",
        "",
        ["figure", "one level", "two levels"],
        about="Each built once; look-ups and downloads are medians. The look-up of the browser: a client of its own "
        "with nothing prepared, in Chromium on the same machine.",
    )
    for shape, shards in shapes.large_shapes():
        found = [made.results.find(f"large.{shape.name}.{levels}-levels.json") for levels in (1, 2)]
        if None in found or any(each.reduced for each in found if each):
            continue
        table.title = f"{label(shape)}, {shards:,} shards, on all cores"
        for name, cell in ROWS:
            table.add(name, *(cell(each) for each in found if each))
    return table


def tables(made: Comparison) -> list[Table]:
    return [wire(made), large(made)]
