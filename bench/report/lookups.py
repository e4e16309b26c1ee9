"""One look-up in a database of 1 GB: its bytes and the server's throughput, of ours in both modes and as published."""

from __future__ import annotations

import dataclasses

import machine
import packed
import published
from cells import Cell, NOTHING, Number, shown, size
from comparison import GIB, KIB, MIB, Comparison, Table, theirs, theirs_if_any
from results import Results
from shapes import Shape

DATABASE_GB = 1
# What a look-up returns: schemes are compared where it is the same.
BITS, RECORDS, LARGE = "a bit or a byte", "records of 64 B to 1 KB", "records of 32 KB"
GROUPS = (BITS, RECORDS, LARGE)
# What a client transfers once, before its look-ups.
NONE, MASKS, HINT, KEYS = "nothing", "masks, down", "hint, down", "keys, up"
HINT_MODE, PACKED_MODE, TWO_LEVELS = "blindfuse, hint mode", "blindfuse, packed mode", "blindfuse, two levels"
KINDS = {PACKED_MODE: "packed", TWO_LEVELS: "two-levels"}


@dataclasses.dataclass(frozen=True)
class Point:
    group: str
    scheme: str
    database: str
    source: str  # paper and table
    machine: str
    lookup: Number  # bytes of query and response
    speed: Number | None  # GiB/s of the database's values, one query, one core; None: not measured
    once: Number | None = None  # bytes
    once_kind: str = NONE

    @property
    def ours(self) -> bool:
        return self.scheme.startswith("blindfuse")


def _published(group: str, paper: str, title: str, key: str, row: published.Row) -> Point:
    """A row that names its bytes as YPIR's, InsPIRe's or VIA's tables do."""
    if "total_KB" in row:
        bytes_ = theirs(row, "total_KB")
    elif "upload_KB" in row:
        bytes_ = theirs(row, "upload_KB") + theirs(row, "download_KB")
    else:
        bytes_ = theirs(row, "query_KB") + theirs(row, "response_KB")
    once = next((theirs_if_any(row, name) for name in ("hint_MB", "offline_MB") if name in row), None)
    uploads = row["scheme"] in ("Respire", "VIA-C")
    return Point(
        group,
        row["scheme"],
        row["text"],
        f"{title}, {published.table(paper, key)['name'].lower()}",
        published.machine(paper, key, row),
        bytes_ * KIB.size,
        theirs(row, "throughput_GB_s"),
        once * MIB.size if once else None,
        NONE if once is None else KEYS if uploads else HINT,
    )


def _of_papers() -> list[Point]:
    found = []
    for group, paper, title, key in (
        (BITS, "ypir", "YPIR", "table-2"),
        (BITS, "ypir", "YPIR", "table-8"),
        (BITS, "inspire", "InsPIRe", "table-2"),
        (BITS, "via", "VIA", "table-1"),
        (RECORDS, "inspire", "InsPIRe", "table-3"),
        (LARGE, "ypir", "YPIR", "table-7"),
        (LARGE, "inspire", "InsPIRe", "table-4"),
    ):
        for row in published.rows(paper, key):
            if row["database_GB"] == DATABASE_GB:
                found.append(_published(group, paper, title, key, row))
    frodo = next(row for row in published.rows("frodopir", "table-6") if row["keys"] == 1 << 20)
    found.append(
        Point(
            RECORDS,
            "FrodoPIR",
            frodo["text"],
            "FrodoPIR, table 6",
            published.machine("frodopir", "table-6"),
            (theirs(frodo, "query_KB") + theirs(frodo, "response_KB")) * KIB.size,
            speed(Shape("index", frodo["keys"], frodo["value_bytes"]), theirs(frodo, "response_ms") / 1000),
            theirs(frodo, "download_KB") * KIB.size,
            HINT,
        )
    )
    sizes, downloads = (
        next(row for row in published.rows("chalametpir", key) if (row["keys"], row["value_bytes"]) == (1 << 20, 1024))
        for key in ("table-1", "table-5")
    )
    for row in published.rows("chalametpir", "table-2"):
        if (row["keys"], row["value_bytes"]) == (1 << 20, 1024):
            found.append(
                Point(
                    RECORDS,
                    "ChalametPIR",
                    f"{sizes['text']}, by key",
                    "ChalametPIR, tables 1, 2, 5",
                    published.machine("chalametpir", "table-2", row),
                    (theirs(sizes, "query_kB_k3") + theirs(sizes, "response_kB_k3")) * KIB.size,
                    speed(Shape("keyword", row["keys"], row["value_bytes"]), theirs(row, "response_ms") / 1000),
                    theirs(downloads, "download_MB_frodopir") * MIB.size,
                    HINT,
                )
            )
    return found


def speed(shape: Shape, seconds: Number) -> Number:
    """Of one query, GiB/s of the database's values."""
    return Number(shape.raw_bytes / GIB.size, {}) / seconds


def _hint_mode(results: Results, group: str, text: str, shape: Shape, layout: str) -> Point | None:
    database = results.database(shape, layout)
    if database is None or database.reduced:
        return None
    return Point(
        group,
        HINT_MODE,
        text,
        "measured",
        f"{machine.name(database.content['machine'])}, 1 thread",
        database.number("lookup_bytes", "query") + database.number("lookup_bytes", "response"),
        speed(shape, database.number("lookup", "server")),
        database.number("sync", "bytes"),
        HINT,
    )


def _packed_mode(results: Results, group: str, text: str, shape: Shape, scheme: str = PACKED_MODE) -> Point | None:
    kind = KINDS[scheme]
    lookup, seconds = packed.lookup_bytes(results, shape, kind), packed.server_seconds(results, shape, kind)
    if lookup is None:
        return None
    return Point(
        group,
        scheme,
        text,
        "measured" if seconds else "planned",
        packed.machine_name(results, shape, kind) or "–",
        lookup,
        speed(shape, seconds) if seconds else None,
        packed.once_bytes(results, shape, kind),
        MASKS,
    )


def points(results: Results) -> list[Point]:
    keyword, bits = Shape("keyword", 1 << 20, 1024), Shape("index", 1 << 22, 256)
    small, large = Shape("index", 1 << 24, 64), Shape("index", 1 << 15, 1 << 15)
    ours = [
        _hint_mode(results, BITS, "2^22 x 256 B", bits, "planned"),
        _packed_mode(results, RECORDS, "2^20 x 1 KB, by key", keyword),
        _hint_mode(results, RECORDS, "2^20 x 1 KB, by key", keyword, "planned"),
        _hint_mode(results, RECORDS, "2^20 x 1 KB, by key, one shard", keyword, "one-shard"),
        _packed_mode(results, RECORDS, "2^20 x 1 KB with a digest, by key", Shape("keyword", 1 << 20, 1016), TWO_LEVELS),
        _packed_mode(results, RECORDS, "2^24 x 64 B", small),
        _packed_mode(results, RECORDS, "2^24 x 64 B", small, TWO_LEVELS),
        _hint_mode(results, RECORDS, "2^24 x 64 B", small, "planned"),
        _packed_mode(results, LARGE, "2^15 x 32 KB", large),
        _hint_mode(results, LARGE, "2^15 x 32 KB", large, "planned"),
        _hint_mode(results, LARGE, "2^15 x 32 KB, fewest bytes", large, "square"),
    ]
    return [point for point in ours if point] + _of_papers()


def points_table(made: Comparison) -> Table:
    table = Table(
        "look-ups",
        "The points of the chart",
        ["scheme", "database", "source", "machine", "a look-up", "once", "GiB/s"],
        about="By number, except where a row says by key. Every 1 KB is 1,024 bytes. A look-up: query and response, "
        "with keys that go with every query. Once: what a client transfers before its look-ups, in hint and packed "
        "mode once an epoch; keys that are uploaded stay on the server. Ours: the server's whole time over HTTP, on "
        "the same machine; in packed mode by key without HTTP. Theirs without network. A star after a scheme: the "
        "YPIR authors' own version of it.",
    )
    for group in GROUPS:
        table.rows.append([Cell(f"**{group}**"), *[Cell("")] * (len(table.columns) - 1)])
        for point in sorted(
            (point for point in points(made.results) if point.group == group),
            key=lambda point: (not point.ours, point.lookup.value),
        ):
            once = size(point.once)
            table.add(
                f"**{point.scheme}**" if point.ours else point.scheme,
                Cell(point.database),
                Cell(point.source),
                Cell(point.machine),
                size(point.lookup),
                NOTHING if point.once is None else Cell(f"{once.text} ({point.once_kind})", once.number),
                shown(point.speed) if point.speed else packed.NOT_MEASURED,
            )
    return table


def tables(made: Comparison) -> list[Table]:
    return [points_table(made)]
