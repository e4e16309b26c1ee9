"""ChalametPIR's tables 1, 2, 3 and 5, and figure 3."""

import dataclasses

import costs
import packed
import published
from cells import NOTHING, ratio, shown
from comparison import GIB, KIB, MIB, MS, S, Comparison, Table, Unit, as_printed, theirs
from results import of
from shapes import Shape

PAPER = "chalametpir"
LAYOUTS = {"FrodoPIR": "one-shard", "SimplePIR": "square"}
MIB_PER_SECOND = Unit("MiB/s", 1024**2)


def shape_of(row: published.Row, arity: int = 3) -> Shape:
    return Shape("keyword", row["keys"], row["value_bytes"], arity)


def bandwidth(made: Comparison) -> Table:
    table = Table(
        f"{PAPER}-table-1",
        "ChalametPIR, Table 1: bytes of a query and a response",
        ["layout, keys x value, arity", *made.columns("query, KiB", "response, KiB"), "packed mode: both, KiB"],
        about="Their FrodoPIR layout is one shard of ours, their SimplePIR layout the number of shards with the "
        "fewest bytes online. Bytes do not depend on the machine. Theirs: no digest, p of 2^9 to 2^11, "
        "words of 32 bits.",
    )
    for row in published.rows(PAPER, "table-1"):
        for arity in (3, 4):
            plan = made.results.plan(shape_of(row, arity), LAYOUTS[row["layout"]])
            if plan is None:
                continue
            label = f"{row['layout']}, {row['text']}, k = {arity}"
            table.add(
                label + plan.reduced,
                *made.cells(table, label, "query", theirs(row, f"query_kB_k{arity}"), of(plan, "query_bytes"), KIB),
                *made.cells(
                    table, label, "response", theirs(row, f"response_kB_k{arity}"), of(plan, "response_bytes"), KIB
                ),
                packed.cell(packed.lookup_bytes(made.results, shape_of(row, arity)), KIB),
            )
    return table


def online(made: Comparison) -> Table:
    table = Table(
        f"{PAPER}-table-2",
        "ChalametPIR, Table 2: online times",
        [
            "their machine, keys x value",
            *made.columns("query prepared, ms", "response, ms", "parsing, ms"),
            "packed mode: response, ms",
        ],
        about="One shard, arity 3, one thread on both sides; the machines differ, and ours is the one named "
        "above. Response: the product alone, without HTTP. Query: theirs without the part that was "
        "prepared offline, ours with it. Parsing: theirs without the product of secret and hint, ours "
        "with it and with the check of the hint.",
    )
    for row in published.rows(PAPER, "table-2"):
        product = made.results.product(shape_of(row), "one-shard")
        database = made.results.database(shape_of(row), "one-shard")
        found = product or database
        if found is None:
            continue
        label = row["text"]
        table.add(
            f"{published.machine(PAPER, 'table-2', row)}: {label}{found.reduced}",
            *made.cells(table, label, "query prepared", theirs(row, "query_ms"), of(database, "lookup", "prepare"), MS),
            *made.cells(table, label, "server time", theirs(row, "response_ms"), of(product, "seconds"), MS),
            *made.cells(table, label, "parsing", theirs(row, "parsing_ms"), of(database, "lookup", "decode"), MS),
            packed.cell(packed.server_seconds(made.results, shape_of(row)), MS),
        )
    return table


def online_costs(made: Comparison) -> Table:
    table = Table(
        f"{PAPER}-table-3",
        "ChalametPIR, Table 3: online costs, with SparsePIR",
        [
            "scheme, keys x value",
            "their query, KiB",
            "response, KiB",
            "time, s",
            "rate",
            "MiB/s",
            "$ a million",
            "our query, KiB",
            "response, KiB",
            "time, s",
            "rate",
            "MiB/s",
            "$ a million",
            "our time / theirs",
            "our cost / theirs",
        ],
        about=f"Theirs on {published.machine(PAPER, 'table-3')} (SparsePIR's figures are those of its own paper, as "
        "ChalametPIR prints them); ours with one thread on the machine named above, at the same prices of a "
        "core's hour and of transfer. One shard next to FrodoPIR's layout and to SparsePIR, the "
        "fewest bytes online next to SimplePIR's. Rate: record over response; MiB/s: values over time.",
    )
    for row in published.rows(PAPER, "table-3"):
        layout = "square" if row["scheme"].endswith("SimplePIR") else "one-shard"
        shape = shape_of(row)
        product, plan = made.results.product(shape, layout), made.results.plan(shape, layout)
        if product is None or plan is None:
            continue
        label = f"{row['scheme']}: {row['text']}"
        value = plan.number("value_bytes")
        seconds, response = product.number("seconds"), plan.number("response_bytes")
        raw = value * plan.number("key_count")
        cost = costs.online(seconds, response, PAPER)
        million = theirs(row, "cost_dollars") * 1e6
        time_cells = made.cells(table, label, "server time", theirs(row, "runtime_s"), seconds, S)
        cost_cells = made.cells(table, label, "cost", million, cost * 1e6, S)
        made.cells(table, label, "query", theirs(row, "query_kB"), plan.number("query_bytes"), KIB)
        made.cells(table, label, "response", theirs(row, "response_kB"), plan.number("response_bytes"), KIB)
        table.add(
            label + product.reduced,
            *(
                as_printed(theirs(row, name))
                for name in ("query_kB", "response_kB", "runtime_s", "rate", "throughput_MB_s")
            ),
            shown(million),
            shown(plan.number("query_bytes") / KIB.size),
            shown(response / KIB.size),
            time_cells[1],
            shown(value / response),
            shown(raw / seconds / MIB_PER_SECOND.size),
            cost_cells[1],
            time_cells[2],
            cost_cells[2],
        )
    return table


def offline(made: Comparison) -> Table:
    table = Table(
        f"{PAPER}-table-5",
        "ChalametPIR, Table 5: the offline phase",
        [
            "keys x value",
            *made.columns("build, s", "storage, GiB", "download, FrodoPIR's layout, MiB"),
            *made.columns("download, SimplePIR's layout, MiB"),
            "packed mode: download, KiB",
        ],
        about=f"Theirs on {published.machine(PAPER, 'table-5')}; ours with one thread, from a file of records to a "
        "directory that can be served. Their seconds are as printed, and may be milliseconds (see "
        "bench/published/chalametpir.json).",
    )
    for row in published.rows(PAPER, "table-5"):
        shape = shape_of(row)
        database = made.results.database(shape, "one-shard")
        one, square = made.results.plan(shape, "one-shard"), made.results.plan(shape, "square")
        found = database or one
        if found is None:
            continue
        label = row["text"]
        table.add(
            label + found.reduced,
            *made.cells(table, label, "build", theirs(row, "runtime_s"), of(database, "build", "total"), S),
            *made.cells(table, label, "storage", theirs(row, "storage_GB"), of(database, "directory_bytes"), GIB),
            *made.cells(table, label, "download", theirs(row, "download_MB_frodopir"), of(one, "sync_bytes"), MIB),
            *made.cells(table, label, "hint", theirs(row, "download_MB_simplepir"), of(square, "sync_bytes"), MIB),
            packed.cell(packed.once_bytes(made.results, shape), KIB),
        )
    return table


def keyword_overhead(made: Comparison) -> Table:
    table = Table(
        f"{PAPER}-figure-3",
        "ChalametPIR, Figure 3: what keywords cost, keyword over index on the same data",
        ["their machine, keys x value", "server time: theirs", "ours", "query bytes: ours", "response bytes: ours"],
        about="Theirs: table 2 over table 4. One shard, arity 3, one thread; factors, so that machines cancel out.",
    )
    for row, other in zip(published.rows(PAPER, "table-2"), published.rows(PAPER, "table-4"), strict=True):
        shape = shape_of(row)
        index = dataclasses.replace(shape, kind="index")
        keyword_time, index_time = made.results.product(shape, "one-shard"), made.results.product(index, "one-shard")
        keyword_plan, index_plan = made.results.plan(shape, "one-shard"), made.results.plan(index, "one-shard")
        if keyword_time is None or index_time is None or keyword_plan is None or index_plan is None:
            continue
        bytes_cells = [
            ratio(keyword_plan.number(name) / index_plan.number(name)) for name in ("query_bytes", "response_bytes")
        ]
        paper = theirs(row, "response_ms") / theirs(other, "response_ms")
        ours = keyword_time.number("seconds") / index_time.number("seconds")
        # One of the paper's times is a misprint, and shows nothing.
        misprint = f"{other['where']}.response_ms".partition("#")[2] in {
            entry["where"] for entry in published.document(PAPER)["inconsistencies"]
        }
        if not misprint:
            made.cells(table, row["text"], "overhead of keywords", paper, ours, S)
        table.add(
            f"{published.machine(PAPER, 'table-2', row)}: {row['text']}{keyword_time.reduced}",
            NOTHING if misprint else ratio(paper),
            ratio(ours),
            *bytes_cells,
        )
    return table


def tables(made: Comparison) -> list[Table]:
    return [bandwidth(made), online(made), online_costs(made), offline(made), keyword_overhead(made)]
