"""Databases whose requests are for several keys: what a key costs as it is planned, as it was measured next to a
database of the same input for one key in a request, and next to SealPIR's batch codes."""

import published
import shapes
from cells import NOTHING, Cell, Number, count, decimal_size, seconds, shown
from comparison import KIB, S, Comparison, Table, as_printed, theirs
from results import Result
from shapes import Shape

BLOCK = "several-keys"
MEASURED_KEYS = 64  # in a request
NOT_MEASURED = Cell("not measured")


def plan_of(made: Comparison, shape: Shape, keys: int) -> Result | None:
    found = made.results.find(f"several-keys-plan.{shape.name}.{keys}-keys.json")
    return None if found is None or found.reduced else found


def measured(made: Comparison, shape: Shape) -> Result | None:
    found = made.results.find(f"several-keys.{shape.name}.{MEASURED_KEYS}-keys.json")
    return None if found is None or found.reduced else found


def planned(made: Comparison) -> Table:
    table = Table(
        f"{BLOCK}-planned",
        "Requests for several keys, as they are planned",
        ["keys x value", "keys a request", "buckets", "rows of a bucket", "bytes a key", "passes a key", "matrix",
         "tables", "once", "a single key", "pays from"],
        about="By key, in packed mode; planned for 100 look-ups a client and epoch. Bytes a key: query and response "
        "of a full request, for each of its keys. Passes a key: multiply-adds of a full request for each key, in those "
        "of a look-up in the database for one key. A single key costs a whole request. Pays from: the number of keys "
        "asked for together from which a request takes fewer bytes than single look-ups.",
    )
    for shape in shapes.several_keys_planned_shapes():
        for keys in shapes.KEYS_PER_REQUEST:
            found = plan_of(made, shape, keys)
            if found is None:
                continue
            if not any(row[0].text == shape.label for row in table.rows):
                one = found.part("one_key")
                table.add(
                    shape.label, Cell("1"), NOTHING, count(one.number("row_count")),
                    decimal_size(one.number("bytes_per_key")), shown(one.number("passes_per_key")),
                    decimal_size(one.number("matrix_bytes")), decimal_size(one.number("packing_table_bytes")),
                    decimal_size(one.number("sync_bytes")), NOTHING, NOTHING,
                )
            several = found.part("layout")
            pays = found.figures["keys_that_pay"]
            table.add(
                shape.label,
                count(several.number("keys_per_request")),
                count(several.number("bucket_count")),
                count(several.number("row_count")),
                decimal_size(several.number("bytes_per_key")),
                shown(several.number("passes_per_key")),
                decimal_size(several.number("matrix_bytes")),
                decimal_size(several.number("packing_table_bytes")),
                decimal_size(several.number("sync_bytes")),
                decimal_size(found.number("single_key_bytes")),
                NOTHING if pays is None else count(found.number("keys_that_pay")),
            )
    return table


def bytes_of_a_key(part: Result) -> Number:
    """Of all that are asked for together."""
    asked = part.part("asked_all")
    return (asked.number("query_bytes") + asked.number("response_bytes")) / asked.number("keys")


# Of a row: its name, and its cell in the part of either database.
ROWS = (
    ("rows of a shard or bucket", lambda part: count(part.number("layout", "row_count"))),
    ("columns", lambda part: count(part.number("layout", "column_count"))),
    ("matrix", lambda part: decimal_size(part.number("layout", "matrix_bytes"))),
    ("packing tables", lambda part: decimal_size(part.number("layout", "packing_table_bytes"))),
    ("build", lambda part: seconds(part.number("build", "wall"))),
    ("memory of the build", lambda part: decimal_size(part.number("build", "peak_bytes"))),
    ("directory on disk", lambda part: decimal_size(part.number("directory_bytes"))),
    ("memory of the server", lambda part: decimal_size(part.number("server_resident_bytes"))),
    ("once: masks and tables", lambda part: decimal_size(part.number("sync_bytes"))),
    ("requests for one key", lambda part: count(part.number("asked_one", "requests"))),
    ("bytes to the server for one key", lambda part: count(part.number("asked_one", "server_received_bytes"))),
    ("requests for all keys", lambda part: count(part.number("asked_all", "requests"))),
    ("bytes to the server for all keys", lambda part: count(part.number("asked_all", "server_received_bytes"))),
    ("query and response, for each of all keys", lambda part: decimal_size(bytes_of_a_key(part))),
    ("all keys: the client's wait for the server", lambda part: seconds(part.number("asked_all", "server"))),
    ("all keys: making the queries", lambda part: seconds(part.number("asked_all", "prepare"))),
    ("all keys: decoding", lambda part: seconds(part.number("asked_all", "decode"))),
    ("all keys: the client's whole program", lambda part: seconds(part.number("asked_all", "wall"))),
    ("memory of the client", lambda part: decimal_size(part.number("asked_all", "client_peak_bytes"))),
    ("32 clients: requests a second", lambda part: shown(part.number("load", "requests_per_second"))),
    ("32 clients: keys a second", lambda part: shown(part.number("load", "lookups_per_second"))),
)


def request_to_lookups(found: Result) -> tuple[Number, Number]:
    """The server's time of a full request, alone and in full batches, in that of as many single look-ups in full
    batches: less than 1 if the request is faster."""
    keys = found.number("keys_per_request")
    single = found.number("one_key", "load", "lookups_per_second")
    alone = found.number("several_keys", "asked_all", "server") * single / keys
    # The load's requests may leave a key out, and so have fewer keys than that.
    batches = single / found.number("several_keys", "load", "requests_per_second") / keys
    return alone, batches


def next_to_one_key(made: Comparison) -> Table:
    table = Table(
        BLOCK,
        "Requests for one key and for several keys, measured",
        ["keys x value", "figure", "one key a request", "several keys a request"],
        about="Two databases of the same input in packed mode, in the planner's layouts, each built once on all cores "
        "of the machine that also makes the load. All keys: as many as a request of the second database has, in one "
        "call of the client. The last two rows: the server's time of a full request, in that of as many single "
        "look-ups in full batches of the first database; less than one is faster.",
    )
    for shape in shapes.several_keys_shapes():
        found = measured(made, shape)
        if found is None:
            continue
        parts = found.part("one_key"), found.part("several_keys")
        keys = found.number("keys_per_request")
        table.add(shape.label, Cell("keys a request"), Cell("1"), count(keys))
        for name, cell in ROWS:
            table.add(shape.label, Cell(name), *map(cell, parts))
        for name, quotient in zip(("alone", "in full batches"), request_to_lookups(found), strict=True):
            table.add(shape.label, Cell(f"a request to single look-ups, {name}"), NOTHING, shown(quotient))
    return table


def next_to_sealpir(made: Comparison) -> Table:
    table = Table(
        f"{BLOCK}-sealpir",
        "SealPIR, Figure 12: what each of several keys costs",
        ["keys a request", "what, for each key", "Pung's multi-retrieval", "mPIR of SealPIR", "ours"],
        about=f"Theirs on {published.machine('sealpir', 'figure-12')}: processor time, elements of 288 bytes by "
        "number. Ours by key, in packed mode: bytes as they are planned for the same elements. Our server's time is that of "
        "the measured database with as many keys and values of 256 bytes, in full batches on all cores: seconds of all "
        "cores, where theirs are of one.",
    )
    rows = published.rows("sealpir", "figure-12")
    single, shape = rows[0], shapes.several_keys_planned_shapes()[-1]
    near = measured(made, shapes.several_keys_shapes()[0])
    for keys in (1, *shapes.KEYS_PER_REQUEST):
        pung, mpir = [row for row in rows if row["keys_per_request"] == keys] if keys > 1 else (single, single)
        found = plan_of(made, shape, max(keys, shapes.KEYS_PER_REQUEST[0]))
        ours = found.part("one_key" if keys == 1 else "layout") if found else None
        for what, column, name in (("query", "query_KB", "query_bytes"), ("response", "answer_KB", "response_bytes")):
            number = ours.number(name) / keys if ours else None
            table.add(
                str(keys),
                Cell(f"{what}, {KIB.name}"),
                as_printed(theirs(pung, column)),
                as_printed(theirs(mpir, column)),
                shown(number, per_unit=KIB.size) if number else NOT_MEASURED,
            )
        part = {1: "one_key", MEASURED_KEYS: "several_keys"}.get(keys)
        took = Number(1, {}) / near.number(part, "load", "lookups_per_second") if near and part else None
        table.add(
            str(keys),
            Cell(f"server, {S.name}"),
            as_printed(theirs(pung, "answer_s")),
            as_printed(theirs(mpir, "answer_s")),
            shown(took) if took else NOT_MEASURED,
        )
    return table


def tables(made: Comparison) -> list[Table]:
    return [planned(made), next_to_one_key(made), next_to_sealpir(made)]
