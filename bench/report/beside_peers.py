"""Peers' own code compared with ours, as ratios to memory bandwidth on the same kind of machine; and what each can
do."""

import packed
import published
from cells import Cell, NOTHING, count, printed, ratio, size
from comparison import KIB, MB_DECIMAL, MS, S, Comparison, Table, Unit, as_printed, theirs, theirs_if_any
from results import of
from shapes import Shape

PAPER = "peers"


def shape_of(row: published.Row) -> Shape:
    """Single bits are compared with a gigabyte of small records."""
    if row["value_bytes"] < 1:
        return Shape("index", 1 << 22, 256)
    return Shape(row["kind"], row["keys"], row["value_bytes"])


def server(made: Comparison) -> Table:
    table = Table(
        "peers-server",
        "Peers: one query",
        [
            "peer, keys x value, threads",
            "values over time, over memory bandwidth: theirs",
            "ours",
            "ours / theirs",
            *made.columns("query, KiB", "response, KiB"),
            "hint, MB: theirs",
            "ours",
            "ours / theirs",
            "packed mode: both, KiB",
            "once, KiB",
        ],
        about=f"Theirs on {published.document(PAPER)['machines']['zen5']['text']}. Memory bandwidth is that of "
        "the same run, one thread's where they ran with one. Ours: the planner's layout for 100 look-ups a client; "
        "single bits come with 256 bytes around them.",
    )
    for row in published.rows(PAPER, "server"):
        shape = shape_of(row)
        product = made.results.product(shape, "planned", row["threads"])
        plan = made.results.plan(shape, "planned")
        if product is None or plan is None:
            continue
        label = f"{row['scheme']}, {row['text']}"
        # Peers' ratios with two threads are to what two threads read, as ours are.
        raw = plan.number("key_count") * plan.number("value_bytes")
        our_ratio = raw / product.number("seconds") / product.number("read_bytes_per_second")
        speed = made.cells(table, label, "share of memory bandwidth", theirs(row, "ratio"), our_ratio, Unit(""), True)
        table.add(
            f"{label}, {row['threads']}{product.reduced}",
            *speed,
            *made.cells(table, label, "query", theirs(row, "query_KB"), plan.number("query_bytes"), KIB),
            *made.cells(table, label, "response", theirs(row, "response_KB"), plan.number("response_bytes"), KIB),
            *made.cells(table, label, "hint", theirs_if_any(row, "hint_MB"), plan.number("sync_bytes"), MB_DECIMAL),
            packed.cell(packed.lookup_bytes(made.results, shape), KIB),
            packed.cell(packed.once_bytes(made.results, shape), KIB),
        )
    return table


def batching(made: Comparison) -> Table:
    table = Table(
        "peers-batching",
        "Peers: queries of different clients in one pass",
        ["scheme", "batch", "effective bytes over memory bandwidth"],
        about="One thread.",
    )
    ours = made.results.find("product.keyword-1048576x1024-k3.planned.batches.json")
    if ours is None:
        return table
    for row in published.rows(PAPER, "batching"):
        table.add(
            f"{row['scheme']}, the scan alone", as_printed(theirs(row, "batch")), as_printed(theirs(row, "ratio"))
        )
    for i, line in enumerate(ours.figures["products"]):
        if line["threads"] == 1:
            table.add(
                "blindfuse" + ours.reduced,
                count(ours.number("products", i, "batch")),
                ratio(ours.number("products", i, "ratio")),
            )
    return table


def offline(made: Comparison) -> Table:
    table = Table(
        "peers-offline",
        "Peers: the offline phase",
        ["peer, keys x value, threads", *made.columns("build, s"), "memory: theirs, GB", "ours"],
        about="From records to a database that can be served, one thread of ours next to one of theirs and to "
        "two; the planner's layout.",
    )
    for row in published.rows(PAPER, "offline"):
        database = made.results.database(shape_of(row), "planned")
        if database is None:
            continue
        note = f" ({row['note']})" if row["note"] else ""
        label = f"{row['scheme']}, {row['text']}"
        memory = theirs_if_any(row, "memory_GB")
        table.add(
            f"{label}, {row['threads']}{note}{database.reduced}",
            *made.cells(table, label, "build", theirs(row, "seconds"), database.number("build", "total"), S),
            as_printed(memory),
            size(database.number("build", "peak_bytes")),
        )
    return table


def client(made: Comparison) -> Table:
    table = Table(
        "peers-client",
        "Peers: the client",
        [
            "peer, keys x value",
            "derive or load A: theirs, s",
            "ours",
            *made.columns("one query prepared, s", "parsing, ms"),
            "our client's memory",
        ],
        about="Ours makes A anew for every query, which is in the time of the query, and holds none of it; one "
        "thread. Parsing: ours also checks the hint and multiplies it by the secret.",
    )
    for row in published.rows(PAPER, "client"):
        database = made.results.database(shape_of(row), "planned")
        if database is None:
            continue
        label = f"{row['scheme']}, {row['text']}"
        derive = theirs_if_any(row, "derive_s")
        table.add(
            f"{label}{database.reduced}",
            (
                Cell(row["derive_note"])
                if derive is None
                else Cell(f"{printed(derive).text} ({row['derive_note']})", derive)
            ),
            Cell("none"),
            *made.cells(table, label, "query prepared", theirs(row, "query_s"), of(database, "lookup", "prepare"), S),
            *made.cells(table, label, "parsing", theirs(row, "parse_ms"), of(database, "lookup", "decode"), MS),
            size(of(database, "lookup", "client_peak_bytes")),
        )
    return table


def tables(made: Comparison) -> list[Table]:
    return [server(made), batching(made), offline(made), client(made)]


def features() -> Table:
    """What each can do; facts, and no measurements."""
    document = published.document("features")
    table = Table("features", "What each can do", ["", *document["columns"]], about=document["about"])
    for name, *entries in document["rows"]:
        table.add(name, *(Cell(entry) if entry else NOTHING for entry in entries))
    return table
