"""FrodoPIR's tables 6, 8, 9 and 10: the same shapes as index databases."""

import packed
import published
import shapes
from cells import Cell, Number, read, shown
from comparison import KIB, MIB, MS, S, Comparison, Table, as_printed, theirs
from results import Result, of
from shapes import Shape

PAPER = "frodopir"


def sum_of(row: published.Row, *columns: str) -> Number:
    found = [theirs(row, column) for column in columns]
    total = found[0]
    for each in found[1:]:
        total = total + each
    return total


def one_client(made: Comparison) -> Table:
    table = Table(
        f"{PAPER}-table-6",
        "FrodoPIR, Table 6: one server, one client",
        ["keys x value", "what", "theirs", "ours", "ours / theirs", "packed mode"],
        about=f"Theirs on {published.machine(PAPER, 'table-6')}; ours with one thread on the machine named above. "
        "Query prepared in all: theirs derives the matrix, then does the rest of the query; ours does both "
        "for every query. Parsing: ours also multiplies secret and hint, and checks the hint.",
    )
    for row in published.rows(PAPER, "table-6"):
        shape = Shape("index", row["keys"], row["value_bytes"])
        plan, product = made.results.plan(shape, "one-shard"), made.results.product(shape, "one-shard")
        database = made.results.database(shape, "one-shard")
        prepared = sum_of(row, "derive_s", "query_preprocessing_s") + theirs(row, "query_ms") / 1000
        for what, unit, printed_there, ours, found in (
            ("download", KIB, theirs(row, "download_KB"), of(plan, "sync_bytes"), plan),
            ("build", S, theirs(row, "preprocessing_s"), of(database, "build", "total"), database),
            ("query prepared in all", S, prepared, of(database, "lookup", "prepare"), database),
            ("query", KIB, theirs(row, "query_KB"), of(plan, "query_bytes"), plan),
            ("response", KIB, theirs(row, "response_KB"), of(plan, "response_bytes"), plan),
            ("server time", MS, theirs(row, "response_ms"), of(product, "seconds"), product),
            ("parsing", MS, theirs(row, "output_ms"), of(database, "lookup", "decode"), database),
        ):
            if found is not None:
                table.add(
                    row["text"] + found.reduced,
                    Cell(f"{what}, {unit.name}"),
                    *made.cells(table, row["text"], what, printed_there, ours, unit),
                    packed.NOT_MEASURED,
                )
    return table


def safe_browsing(made: Comparison) -> Table:
    table = Table(
        f"{PAPER}-table-8",
        "FrodoPIR, Table 8: SafeBrowsing, 3 million values of 32 bytes in 16 shards",
        ["what", "theirs, one shard", "theirs, 16 shards", "ours, 16 shards", "ours / theirs"],
        about=f"Theirs on {published.machine(PAPER, 'table-8')}, printed for one shard: one query serves all 16, "
        "everything else is 16 times as much. Ours: one query, one product over all shards, one thread.",
    )
    row, shape = published.rows(PAPER, "table-8")[0], shapes.safe_browsing()
    plan, product = made.results.plan(shape, "shards-16"), made.results.product(shape, "shards-16")
    database = made.results.database(shape, "shards-16")
    sixteen = read(16, "published/frodopir.json#tables.table-8.shards")
    prepared = sum_of(row, "derive_s", "query_preprocessing_s") + theirs(row, "query_ms") / 1000
    lines = [
        ("download", "KiB", theirs(row, "download_KB"), True, of(plan, "sync_bytes"), KIB, plan),
        ("build", "s", theirs(row, "preprocessing_s"), True, of(database, "build", "total"), S, database),
        ("query prepared in all", "s", prepared, False, of(database, "lookup", "prepare"), S, database),
        ("query", "KiB", theirs(row, "query_KB"), False, of(plan, "query_bytes"), KIB, plan),
        ("response", "KiB", theirs(row, "response_KB"), True, of(plan, "response_bytes"), KIB, plan),
        ("server time", "ms", theirs(row, "response_ms"), True, of(product, "seconds"), MS, product),
        ("parsing", "ms", theirs(row, "output_ms"), False, of(database, "lookup", "decode"), MS, database),
    ]
    for what, unit, one, times, ours, kind, found in lines:
        if found is None:
            continue
        every = one * sixteen if times else one
        cells = made.cells(table, "3 million values", what, every, ours, kind)
        table.add(f"{what}, {unit}{found.reduced}", as_printed(one), shown(every), *cells[1:])
    return table


def month_of_browsing(made: Comparison) -> Table:
    table = Table(
        f"{PAPER}-table-9",
        "FrodoPIR, Table 9: SafeBrowsing for a client",
        ["", "first: s", "MiB", "running, s a month", "communication, MiB a month"],
        about="The paper's model of use: 16 queries and 8 updates of one shard a day, 31 days. Theirs are the "
        "paper's estimates, without the list of hashes that a client of an index database needs to find "
        "its index. Ours is computed with the same model from what was measured: first the hint, then "
        "queries, responses and the hints of updated shards; time to prepare and to decode.",
    )
    for row in published.rows(PAPER, "table-9"):
        table.add(
            row["text"],
            *(
                as_printed(theirs(row, name))
                for name in (
                    "client_init_s",
                    "initial_communication_MB",
                    "client_running_s_month",
                    "online_communication_MB_month",
                )
            ),
        )
    shape = shapes.safe_browsing()
    plan, database = made.results.plan(shape, "shards-16"), made.results.database(shape, "shards-16")
    if plan is None or database is None:
        table.rows.clear()
        return table

    def given(name: str) -> Number:
        return read(published.table(PAPER, "table-9")[name], f"published/{PAPER}.json#tables.table-9.{name}")

    shards = plan.number("shard_count")
    look_up = plan.number("query_bytes") + plan.number("response_bytes")
    update = plan.number("hint_bytes") / shards
    day = look_up * given("queries_per_day") + update * given("updates_per_day")
    month = day * given("days_per_month")
    running = (
        (database.number("lookup", "prepare") + database.number("lookup", "decode"))
        * given("queries_per_day")
        * given("days_per_month")
    )
    theirs_row = published.rows(PAPER, "table-9")[-1]
    cells = {
        name: made.cells(table, "SafeBrowsing", what, theirs(theirs_row, name), ours, unit)
        for name, what, ours, unit in (
            ("client_init_s", "first sync", database.number("sync", "seconds"), S),
            ("initial_communication_MB", "initial communication", plan.number("sync_bytes"), MIB),
            ("client_running_s_month", "client's month", running, S),
            ("online_communication_MB_month", "a month's communication", month, MIB),
        )
    }
    table.add("blindfuse" + database.reduced, *(each[1] for each in cells.values()))
    table.add("blindfuse / FrodoPIR", *(each[2] for each in cells.values()))
    return table


def dimensions(made: Comparison) -> Table:
    table = Table(
        f"{PAPER}-table-10",
        "FrodoPIR, Table 10: smaller LWE dimensions",
        ["keys x value, dimension", *made.columns("download, KiB", "build, s", "query prepared in all, s")],
        about=f"Theirs on {published.machine(PAPER, 'table-10')}; ours with one thread on the machine named above.",
    )
    for row in published.rows(PAPER, "table-10"):
        shape = Shape("index", row["keys"], row["value_bytes"], lwe=f"lwe-{row['dimension']}")
        plan, database = made.results.plan(shape, "one-shard"), made.results.database(shape, "one-shard")
        found: Result | None = database or plan
        if found is None:
            continue
        label = f"{row['text']}, n = {row['dimension']}"
        prepared = sum_of(row, "derive_s", "query_preprocessing_s")
        table.add(
            label + found.reduced,
            *made.cells(table, label, "download", theirs(row, "download_KB"), of(plan, "sync_bytes"), KIB),
            *made.cells(table, label, "build", theirs(row, "preprocessing_s"), of(database, "build", "total"), S),
            *made.cells(table, label, "query prepared in all", prepared, of(database, "lookup", "prepare"), S),
        )
    return table


def tables(made: Comparison) -> list[Table]:
    return [one_client(made), safe_browsing(made), month_of_browsing(made), dimensions(made)]
