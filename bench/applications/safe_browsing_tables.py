"""What safe_browsing.py measured, as tables: the server's week, a client's week, and one look-up."""

from __future__ import annotations

import dataclasses

import published
from cells import NOTHING, Cell, Number, count, read, seconds, shown, size
from comparison import MIB, Table, theirs
from results import Result

NAME = "safe-browsing"
PAPER = "frodopir"


def server_table(found: Result) -> Table:
    model = found.figures["model"]
    table = Table(
        f"{NAME}-server",
        "The server's week",
        ["", "one database", "tiers: base", "tiers: additions", f"index form, {model['shards']} shards"],
        about=f"{model['urls']:,} URLs, {model['updates']} updates of {model['added']} more; {model['threads']} "
        "threads. The base is built once, everything else with every update. The tiers' week was run whole, and the "
        f"additions are described as they are at its end; of the others {found.content['runs']} updates were run, and "
        f"their week is {model['updates']} times the median. Free places of the index form count as records.",
    )
    plain, index = found.part("plain"), found.part("index")
    base, week = found.part("tiers", "base"), found.part("tiers", "week")
    four = (plain, base, week, index)
    for what, name, show in (
        ("records", "key_count", count),
        ("shards", "shard_count", count),
        ("matrix", "matrix_bytes", size),
        ("hints of all shards", "hint_bytes", size),
    ):
        table.add(what, *(show(each.number("layout", name)) for each in four))
    directories = found.part("tiers", "directory_bytes")
    table.add(
        "directory on disk",
        size(plain.number("directory_bytes")),
        size(directories.number("base")),
        size(directories.number("recent")),
        size(index.number("directory_bytes")),
    )
    table.add(
        "first build",
        seconds(plain.number("first", "seconds")),
        seconds(base.number("build", "seconds")),
        NOTHING,
        seconds(index.number("first", "seconds")),
    )
    for what, name, show in (
        ("build of an update", "seconds", seconds),
        ("of it, hints", "hint_seconds", seconds),
        ("shards that an update changes", "shards_rebuilt", count),
        ("hints that an update changes", "changed_hint_bytes", size),
        ("memory of its build", "peak_bytes", size),
    ):
        cells = [show(each.number("update", name)) for each in (plain, week, index)]
        table.add(what, cells[0], NOTHING, cells[1], cells[2])
    table.add("builds of the week", *builds_of_week(found))
    for what, name in (
        ("yardstick: streaming reads, GB/s", "read_bytes_per_second"),
        ("yardstick: multiply instruction, G/s", "peak_multiply_adds_per_second"),
    ):
        parts = (plain.part("update"), base.part("build"), index.part("update"))
        cells = [shown(part.number(name) / 1e9) for part in parts]
        table.add(what, cells[0], cells[1], NOTHING, cells[2])
    return table


def builds_of_week(found: Result) -> list[Cell]:
    updates = found.number("model", "updates")
    return [
        seconds(found.number("plain", "update", "seconds") * updates),
        seconds(found.number("tiers", "base", "build", "seconds")),
        seconds(found.number("tiers", "week", "build_seconds")),
        seconds(found.number("index", "update", "seconds") * updates),
    ]


@dataclasses.dataclass(frozen=True)
class Client:
    """What one way of serving costs a client, in bytes unless it says seconds."""

    once: Number
    sync: Number
    look_up: Number
    syncs_a_day: Number
    week: Number
    once_seconds: Number | None = None
    sync_seconds: Number | None = None
    look_up_seconds: Number | None = None
    week_seconds: Number | None = None

    def day(self, look_ups: Number) -> Number:
        return self.sync * self.syncs_a_day + self.look_up * look_ups


def measured_client(found: Result, form: Result) -> Client:
    """Of the forms of which some updates were run; the week is a multiple of one of them."""
    syncs, look_ups = found.number("model", "syncs"), found.number("model", "look_ups")
    once, sync, look_up = form.number("once", "bytes"), form.number("sync", "bytes"), form.number("look_up", "bytes")
    sync_seconds, look_up_seconds = form.number("sync", "seconds"), form.number("look_up", "total_seconds")
    return Client(
        once,
        sync,
        look_up,
        found.number("model", "syncs_a_day"),
        once + sync * syncs + look_up * look_ups,
        form.number("once", "seconds"),
        sync_seconds,
        look_up_seconds,
        form.number("once", "seconds") + sync_seconds * syncs + look_up_seconds * look_ups,
    )


def client_of_tiers(found: Result) -> Client:
    """The week as it was run."""
    tiers, week = found.part("tiers"), found.part("tiers", "week")

    def once(what: str) -> Number:
        return tiers.number("base", "once", what) + tiers.number("recent", "once", what)

    return Client(
        once("bytes"),
        week.number("sync", "bytes"),
        week.number("look_up", "bytes"),
        found.number("model", "syncs_a_day"),
        once("bytes") + week.number("sync_bytes") + week.number("look_up_bytes"),
        once("seconds"),
        week.number("sync", "seconds"),
        week.number("look_up", "total_seconds"),
        once("seconds") + week.number("sync_seconds") + week.number("look_up_seconds"),
    )


def client_once_a_day(found: Result) -> Client:
    """One database, and bytes alone: its layout is planned, not built. The first day's sync is the first fetch."""
    plan, days = found.part("once_a_day"), found.number("model", "days")
    sync, look_up = plan.number("sync_bytes"), plan.number("query_bytes") + plan.number("response_bytes")
    week = (sync + look_up * found.number("model", "look_ups_a_day")) * days
    return Client(sync, sync, look_up, Number(1.0, {}), week)


def published_cells(found: Result, rows: list[str]) -> dict[str, Cell]:
    """FrodoPIR's estimates for a client, of the rows that there are any for."""
    row = published.rows(PAPER, "table-9")[-1]
    place = f"published/{PAPER}.json#tables.table-9.days_per_month"
    month = read(published.table(PAPER, "table-9")["days_per_month"], place)
    days = found.number("model", "days")
    first = theirs(row, "initial_communication_MB") * MIB.size
    day = theirs(row, "online_communication_MB_month") * MIB.size / month
    first_time, day_time = theirs(row, "client_init_s"), theirs(row, "client_running_s_month") / month
    values = (
        size(first),
        seconds(first_time),
        size(day),
        size(first + day * days),
        seconds(first_time + day_time * days),
    )
    return dict(zip(rows, values, strict=True))


def client_table(found: Result) -> Table:
    model = found.figures["model"]
    table = Table(
        f"{NAME}-client",
        "A client's week",
        [
            "",
            "one database",
            "one database, a sync a day",
            "two tiers",
            f"index form, {model['shards']} shards",
            "FrodoPIR, published",
        ],
        about=f"One client with {model['syncs_a_day']} syncs and {model['look_ups_a_day']} look-ups a day. A day is "
        "what its syncs and look-ups take; the week has in addition what is fetched once, hints and shard tables, of "
        "the tiers' base too. Manifests are left out. The tiers' week was run whole; the others' is computed from the "
        "rows above it. One database with a sync a day has a layout of its own, and only bytes, from the planner. A "
        f"look-up in the tiers asks both. {model['look_ups_without_list']} look-ups a day stand for a client without a "
        "list of prefixes, and are made up. The index form needs that list. The paper's are estimates, without it, of "
        f"{published.machine(PAPER, 'table-9')}.",
    )
    clients = (
        measured_client(found, found.part("plain")),
        client_once_a_day(found),
        client_of_tiers(found),
        measured_client(found, found.part("index")),
    )
    few, many = found.number("model", "look_ups_a_day"), found.number("model", "look_ups_without_list")
    first, first_time, day = "once", "once, time", f"a day, {model['look_ups_a_day']} look-ups"
    whole, whole_time = "the week", "the week, time"
    beside = published_cells(found, [first, first_time, day, whole, whole_time])

    def add(label: str, cells: list[Cell]) -> None:
        table.add(label, *cells, beside.get(label, NOTHING))

    add(first, [size(each.once) for each in clients])
    add(first_time, [seconds(each.once_seconds) for each in clients])
    add("each sync", [size(each.sync) for each in clients])
    add("each sync, time", [seconds(each.sync_seconds) for each in clients])
    add("each look-up", [size(each.look_up) for each in clients])
    add("each look-up, time", [seconds(each.look_up_seconds) for each in clients])
    add(day, [size(each.day(few)) for each in clients])
    # Without a list there is no index form.
    cells = [size(each.day(many)) for each in clients[:-1]]
    add(f"a day, {model['look_ups_without_list']} look-ups", [*cells, NOTHING])
    add(whole, [size(each.week) for each in clients])
    add(whole_time, [seconds(each.week_seconds) for each in clients])
    prefix = found.number("model", "prefix_bytes")
    added = found.number("model", "added") * found.number("model", "updates")
    add("in addition, the list of prefixes: once", [NOTHING] * 3 + [size(prefix * found.number("model", "urls"))])
    add("in addition, what the week adds to it", [NOTHING] * 3 + [size(prefix * added)])
    return table


def look_up_table(found: Result) -> Table:
    model = found.figures["model"]
    table = Table(
        f"{NAME}-lookup",
        "A look-up",
        ["", "one database", "tiers: base", "tiers: additions", "both tiers", f"index form, {model['shards']} shards"],
        about=f"Server and client with {model['threads']} threads each, on the same processors; the additions as they "
        "are at the end of the week. Both tiers: one after the other; a client may ask them at the same time.",
    )
    plain, index = found.part("plain", "look_up"), found.part("index", "look_up")
    base, recent = found.part("tiers", "look_up", "base"), found.part("tiers", "look_up", "recent")
    for what, name, show in (
        ("query", "query_bytes", size),
        ("response", "response_bytes", size),
        ("client prepares", "prepare_seconds", seconds),
        ("server answers", "server_seconds", seconds),
        ("client decodes", "decode_seconds", seconds),
        ("in all", "total_seconds", seconds),
    ):
        tiers = [base.number(name), recent.number(name)]
        numbers = [plain.number(name), *tiers, tiers[0] + tiers[1], index.number(name)]
        table.add(what, *map(show, numbers))
    for what, name in (
        ("yardstick: streaming reads, GB/s", "read_bytes_per_second"),
        ("yardstick: multiply instruction, G/s", "peak_multiply_adds_per_second"),
    ):
        cells = [shown(each.number(name) / 1e9) for each in (plain, base, recent, index)]
        table.add(what, *cells[:3], NOTHING, cells[3])
    return table


def tables_of(found: Result) -> list[Table]:
    return [server_table(found), client_table(found), look_up_table(found)]
