"""YPIR's figure 4 and the rows of its tables 2 and 7, next to index databases in the square layout."""

import packed
import published
import shapes
from cells import Cell, Number, count, printed, ratio, read, shown
from comparison import KIB, MIB, MS, Comparison, Table, Unit, as_printed, theirs, theirs_if_any
from shapes import Shape

PAPER = "ypir"
MIB_PER_SECOND = Unit("MiB/s", 1024**2)


def memory(key: str) -> Number:
    """What STREAM read on their machine."""
    which = published.table(PAPER, key)["machine"]
    place = f"published/{PAPER}.json#machines.{which}.memory_GB_s"
    return read(published.document(PAPER)["machines"][which]["memory_GB_s"], place)


def batches(made: Comparison) -> Table:
    table = Table(
        f"{PAPER}-figure-4",
        "YPIR, Figure 4: batches of different clients' queries",
        ["scheme", "batch", "effective GiB/s", "over memory bandwidth"],
        about=f"Effective: the database once for every query of a batch. Theirs: 32 GB on "
        f"{published.machine(PAPER, 'figure-4')}; what the paper's text says of its figure, where 'over' is "
        "a lower bound. Ours: the product alone, one thread; memory bandwidth is that of the same rounds.",
    )
    for row in published.rows(PAPER, "figure-4"):
        found = theirs(row, "throughput_GB_s")
        over = "over " if row["bound"] == "over" else ""
        quotient = found / memory("figure-4")
        table.add(
            f"{row['scheme']} ({row['source']})",
            as_printed(theirs(row, "batch")),
            Cell(over + printed(found).text, found),
            Cell(over + ratio(quotient).text, quotient),
        )
    ours = []
    for shape in shapes.bit_shapes():
        result = made.results.find(f"product.{shape.name}.square.batches.json")
        for i, line in enumerate(result.figures["products"] if result else []):
            if line["threads"] == 1:
                part = result.part("products", i)
                raw = part.number("effective_bytes_per_second") / 1024**3
                ours.append(
                    (
                        f"blindfuse, {shape.keys} x {shape.value_bytes} B{result.reduced}",
                        count(part.number("batch")),
                        shown(raw),
                        ratio(part.number("ratio")),
                    )
                )
    if not ours:
        table.rows.clear()
    for line in ours:
        table.add(*line)
    return table


def single(made: Comparison, key: str, title: str) -> Table:
    table = Table(
        f"{PAPER}-{key}",
        title,
        [
            "scheme, database",
            *made.columns("hint, MiB", "query, KiB", "response, KiB", "server, ms"),
            "values over time, over memory bandwidth: theirs",
            "ours",
            "preprocessing, MiB/s: theirs",
            "ours",
            "packed mode: a look-up, KiB",
            "server, ms",
        ],
        about=f"Theirs on {published.machine(PAPER, key)}, one thread on both sides; ours in the layout with the "
        "fewest bytes online" + (", a record of 256 bytes for the bit." if key == "table-2" else "."),
    )
    machines = set()
    for row in published.rows(PAPER, key):
        if key == "table-2":
            shape = shapes.bit_shape(row)
        else:
            shape = Shape("index", row["keys"], row["value_bytes"])
        machines.add(packed.machine_name(made.results, shape))
        plan, product = made.results.plan(shape, "square"), made.results.product(shape, "square")
        database = made.results.database(shape, "square")
        if plan is None:
            continue
        label = f"{row['scheme']}, {row['text']}"
        preprocessing = (
            plan.number("value_bytes")
            * plan.number("key_count")
            / database.number("build", "total")
            / MIB_PER_SECOND.size
            if database
            else None
        )
        their_speed = theirs(row, "throughput_GB_s") / memory(key)
        our_speed = None
        if product:
            raw = product.measured("keys") * product.measured("value_bytes")
            our_speed = raw / product.number("seconds") / product.number("read_bytes_per_second")
        if our_speed is not None:
            made.cells(table, label, "share of memory bandwidth", their_speed, our_speed, Unit(""), more_is_better=True)
        table.add(
            label + (product.reduced if product else ""),
            *made.cells(table, label, "hint", theirs_if_any(row, "hint_MB"), plan.number("sync_bytes"), MIB),
            *made.cells(table, label, "query", theirs(row, "upload_KB"), plan.number("query_bytes"), KIB),
            *made.cells(table, label, "response", theirs(row, "download_KB"), plan.number("response_bytes"), KIB),
            *made.cells(
                table,
                label,
                "server time",
                theirs(row, "server_ms"),
                product.number("seconds") if product else None,
                MS,
            ),
            ratio(their_speed),
            ratio(our_speed),
            as_printed(theirs(row, "prep_MB_s")),
            shown(preprocessing),
            packed.cell(packed.lookup_bytes(made.results, shape), KIB),
            packed.cell(packed.server_seconds(made.results, shape), MS),
        )
    if named := sorted(filter(None, machines)):
        table.about += f" Packed mode on {' and '.join(named)}."
    return table


def tables(made: Comparison) -> list[Table]:
    return [
        batches(made),
        single(made, "table-2", "YPIR, Table 2: one bit"),
        single(made, "table-7", "YPIR, Table 7: larger records"),
    ]
