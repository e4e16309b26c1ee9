"""Which databases are measured: those of the published tables, as far as they fit."""

import dataclasses
from typing import Any, Iterable

import published

LAYOUTS = ("one-shard", "planned", "square")
LOOKUPS = (1, 10, 100, 1000)  # that a client makes in one epoch
DEFAULT_LWE = "lwe-1774"


@dataclasses.dataclass(frozen=True)
class Limits:
    """What a machine, or a test's patience, has room for."""

    matrix_bytes: int
    keys: int = 1 << 32
    value_bytes: int = 1 << 17


@dataclasses.dataclass(frozen=True)
class Shape:
    kind: str  # keyword or index
    keys: int
    value_bytes: int
    arity: int = 3
    lwe: str = DEFAULT_LWE

    @property
    def name(self) -> str:
        parts = [self.kind, f"{self.keys}x{self.value_bytes}"]
        if self.kind == "keyword":
            parts.append(f"k{self.arity}")
        if self.lwe != DEFAULT_LWE:
            parts.append(self.lwe)
        return "-".join(parts)

    @property
    def label(self) -> str:
        """For people."""
        return f"{self.keys:,} x {self.value_bytes:,} B"

    @property
    def raw_bytes(self) -> int:
        return self.keys * self.value_bytes

    def kind_options(self) -> list[str]:
        """As `blindfuse plan` and `blindfuse build` take them, with the mode left open."""
        return ["--index"] if self.kind == "index" else ["--arity", str(self.arity)]

    def options(self, mode: str = "hint") -> list[str]:
        """The same with a mode."""
        return self.kind_options() + ["--mode", mode] + (["--params", self.lwe] if mode == "hint" else [])

    def fitted(self, limits: Limits) -> "Shape":
        """The largest of this shape that fits: values as they are if possible, keys halved until it does."""
        value_bytes = min(self.value_bytes, limits.value_bytes)
        keys = min(self.keys, limits.keys)
        # A filter, digests and a round number of rows on top.
        while 1.25 * keys * value_bytes > limits.matrix_bytes and keys > 1:
            keys //= 2
        return dataclasses.replace(self, keys=keys, value_bytes=value_bytes)

    def facts(self) -> dict[str, Any]:
        return dataclasses.asdict(self)


def layout_of(plan: dict[str, Any], layout: str) -> dict[str, Any]:
    """One of a plan's layouts: FrodoPIR's shape, SimplePIR's (the fewest bytes online), the planner's, or by shards."""
    found: list[dict[str, Any]] = plan["layouts"]
    if layout == "planned":
        return next(each for each in found if each["chosen"])
    if layout == "square":
        return min(found, key=lambda each: each["query_bytes"] + each["response_bytes"])
    shards = 1 if layout == "one-shard" else int(layout.removeprefix("shards-"))
    return next(each for each in found if each["shard_count"] == shards)


PACKING_BYTES_UNASKED = 256 << 20  # tables of as many bytes never count as too many for a server


def best_compared(compared: list[dict[str, Any]], mode: str, levels: int = 1, matrices: int = 1) -> int | None:
    """Which of the layouts that a plan compares has the fewest bytes, of those of a mode and a number of levels whose
    packing tables are at most `matrices` times the matrix; None if there is none."""

    def counts(each: dict[str, Any]) -> bool:
        most = max(PACKING_BYTES_UNASKED, matrices * each["matrix_bytes"])
        return (each["mode"], each["levels"]) == (mode, levels) and bool(each["packing_table_bytes"] <= most)

    found = [i for i, each in enumerate(compared) if counts(each)]
    return min(found, key=lambda i: int(compared[i]["total_bytes"]), default=None)


def _unique(shapes: Iterable[Shape]) -> list[Shape]:
    return list(dict.fromkeys(shapes))


def _of(name: str, table: str, **more: Any) -> list[Shape]:
    kind = published.table(name, table).get("kind")
    return _unique(
        Shape(row.get("kind", kind), row["keys"], row["value_bytes"], **more)
        for row in published.rows(name, table)
        if row["value_bytes"] >= 1
    )


def keyword_shapes() -> list[Shape]:
    """ChalametPIR's eight."""
    return _of("chalametpir", "table-1")


def index_shapes() -> list[Shape]:
    """The same data without keys, and FrodoPIR's."""
    return _unique(_of("chalametpir", "table-4") + _of("frodopir", "table-6"))


def offline_shapes() -> list[Shape]:
    return _of("chalametpir", "table-5")


def compared_shapes() -> list[Shape]:
    """Those that ChalametPIR compares with SparsePIR."""
    return _of("chalametpir", "table-3")


def safe_browsing() -> Shape:
    row = published.rows("frodopir", "table-8")[0]
    return Shape("index", row["entries"], row["value_bytes"])


def dimension_shapes() -> list[Shape]:
    return _unique(
        Shape("index", row["keys"], row["value_bytes"], lwe=f"lwe-{row['dimension']}")
        for row in published.rows("frodopir", "table-10")
    )


def record_shapes() -> list[Shape]:
    """YPIR's larger records."""
    return _of("ypir", "table-7")


def bit_shape(row: published.Row) -> Shape:
    """YPIR's table 2 asks for one bit: ours comes with the 256 bytes around it."""
    return Shape("index", (row["database_GB"] << 30) // 256, 256)


def bit_shapes() -> list[Shape]:
    return _unique(bit_shape(row) for row in published.rows("ypir", "table-2"))


def peer_shapes() -> list[Shape]:
    return _unique(_of("peers", "server") + _of("peers", "offline"))


def sealpir_shapes() -> list[Shape]:
    return _of("sealpir", "figure-9")


def small_record_shape() -> Shape:
    """InsPIRe's 1 GB of records of 64 bytes."""
    row = published.rows("inspire", "table-3")[0]
    return Shape("index", row["keys"], row["value_bytes"])


def packed_shapes() -> list[Shape]:
    """Those of other schemes that do without a hint, of 1 GB at most."""
    return [*sealpir_shapes(), small_record_shape(), *(s for s in record_shapes() if s.raw_bytes <= 1 << 30)]


def mobile_shapes() -> list[Shape]:
    """Sizes that people know, of look-ups that are paid by the byte."""
    return [
        Shape("keyword", 1_000_000, 32),
        Shape("keyword", 4_000_000, 16),
        Shape("keyword", 1_000_000, 1024),
        Shape("keyword", 10_000_000, 32),
        Shape("keyword", 100_000_000, 32),
        Shape("keyword", 32_000_000, 256),
    ]


def planned_shapes() -> list[Shape]:
    """Every shape of which some table shows bytes."""
    four = [dataclasses.replace(shape, arity=4) for shape in keyword_shapes()]
    return _unique(
        keyword_shapes()
        + four
        + index_shapes()
        + [safe_browsing()]
        + dimension_shapes()
        + record_shapes()
        + bit_shapes()
        + peer_shapes()
        + sealpir_shapes()
        + [small_record_shape()]
    )


def two_level_shapes() -> list[Shape]:
    """Of about 1 GB. Records of 1016 bytes and a digest are packs of 1024 columns."""
    return [Shape("keyword", 1 << 20, 1016), small_record_shape()]


def wire_shapes() -> list[tuple[Shape, int]]:
    """Others whose bytes with two levels are measured, with the largest packing tables, in matrices."""
    small, byte = small_record_shape(), Shape("index", 1 << 27, 1)
    known, million = Shape("keyword", 100_000_000, 32), Shape("keyword", 1 << 20, 1016)
    return [(byte, 1), (byte, 2), (million, 2), (small, 2), (known, 1), (known, 2)]


def large_shapes() -> list[tuple[Shape, int]]:
    """What fills the memory of a small server, with the number of shards."""
    return [(Shape("keyword", 1 << 25, 256), 1024)]


KEYS_PER_REQUEST = (16, 64, 256)  # planned


def several_keys_shapes() -> list[Shape]:
    """Built for one key and for 64 keys in a request."""
    return [Shape("keyword", 1 << 20, 256), Shape("keyword", 10_000_000, 32), Shape("keyword", 1 << 20, 1024)]


def several_keys_planned_shapes() -> list[Shape]:
    """Their bytes alone, with the elements of SealPIR's figure 12."""
    row = published.rows("sealpir", "figure-12")[0]
    sealpir = Shape("keyword", row["keys"], row["value_bytes"])
    return [Shape("keyword", 100_000_000, 32), *several_keys_shapes(), sealpir]
