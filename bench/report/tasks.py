"""The list of measurements that a report consists of, and about how long each takes."""

import dataclasses
from typing import Any

import applications
import machine
import shapes
from shapes import Shape

BATCHES = [1, 2, 4, 8, 16, 32, 64]
FEW = [1, 2, 4, 8, 16]  # for slow kernels, too
SHARES = [0.1, 0.25, 0.5, 0.75, 0.9, 1.0, 1.2]  # of what the closed loop reaches

# For estimates alone, of one thread.
MULTIPLY_ADDS_PER_SECOND = 95e9
READ_BYTES_PER_SECOND = 30e9
INPUT_BYTES_PER_SECOND = 250e6  # of values: read, hashed, written, peeled
FILL_BYTES_PER_SECOND = 700e6  # of a random matrix for the engine's benchmark

# Of these the figures are bytes, which are the same on every machine, whether or not the database would fit.
EXACT = ("plan", "compared", "several-keys-plan")


@dataclasses.dataclass(frozen=True)
class Task:
    kind: str
    name: str
    shape: Shape | None = None
    arguments: tuple[tuple[str, Any], ...] = ()

    @property
    def file(self) -> str:
        return f"{self.kind}.{self.name}.json"

    def seconds(self, runs: int, limits: shapes.Limits) -> float:
        """About how long this takes."""
        if self.shape is None:
            return 600.0 if self.kind == "application" else 240.0
        shape, options = self.shape.fitted(limits), dict(self.arguments)
        matrix = 1.2 * shape.raw_bytes
        if self.kind in EXACT:
            return 0.2 if self.kind == "plan" else 10.0
        if self.kind == "product":
            batches = options.get("batches", [1])
            passes = sum(max(matrix / READ_BYTES_PER_SECOND, b * matrix / MULTIPLY_ADDS_PER_SECOND) for b in batches)
            kernels = 3 if options.get("kernels") == "all" else 1
            threads = 1 if options.get("one_thread") else 1.6
            read = matrix / READ_BYTES_PER_SECOND * len(batches)
            return runs * (matrix / FILL_BYTES_PER_SECOND + 3 * kernels * threads * (passes + read))
        dimension = int(shape.lwe.removeprefix("lwe-"))
        threads = options.get("threads", 1 if self.kind in ("packed", "two-levels") else 2)
        build = dimension * matrix / MULTIPLY_ADDS_PER_SECOND / threads + shape.raw_bytes / INPUT_BYTES_PER_SECOND
        made = 2 * shape.raw_bytes / INPUT_BYTES_PER_SECOND
        if self.kind == "large":
            return made + 4 * build + runs * 30 + 240
        if self.kind == "several-keys":
            return made + 12 * build + runs * 30 + 240  # the second has three copies of each record, and larger tables
        if self.kind == "overview":
            return made + runs * (2 * build + matrix / 1e9 + 30)
        if self.kind == "load":
            return made + build + (len(SHARES) + 1) * runs * 6
        prepare = dimension * 4 * shape.keys * 1.15 / 5e9
        return made + runs * (build + prepare + matrix / 1e9 + 4)


def _product(shape: Shape, layout: str, suffix: str = "", **arguments: Any) -> Task:
    return Task("product", f"{shape.name}.{layout}{suffix}", shape, (("layout", layout), *arguments.items()))


def _database(shape: Shape, layout: str, threads: int) -> Task:
    return Task(
        "database", f"{shape.name}.{layout}.{threads}-threads", shape, (("layout", layout), ("threads", threads))
    )


# The one that batches of clients are shown with: a million records of 1 KiB.
BATCH_SHAPE = Shape("keyword", 1 << 20, 1024)
LOAD_SHAPE = Shape("keyword", 1 << 18, 1024)
# What the report begins with, in the mode that `build` chooses.
OVERVIEW_SHAPES = [
    Shape("keyword", 150_000, 256), Shape("keyword", 1_000_000, 100), Shape("keyword", 1_000_000, 1024),
    Shape("keyword", 100_000_000, 16),
]


def every_task() -> list[Task]:
    """The cheap ones first."""
    made = [Task("plan", shape.name, shape) for shape in shapes.planned_shapes()]
    made += [Task("compared", shape.name, shape) for shape in shapes.mobile_shapes()]
    made += [
        Task("several-keys-plan", f"{shape.name}.{keys}-keys", shape, (("keys_per_request", keys),))
        for shape in shapes.several_keys_planned_shapes()
        for keys in shapes.KEYS_PER_REQUEST
    ]
    made += [_product(shape, "one-shard") for shape in shapes.keyword_shapes() + shapes.index_shapes()]
    made += [_product(shape, "square") for shape in shapes.compared_shapes()]
    made += [_product(shapes.safe_browsing(), "shards-16")]
    made += [_product(shape, "square", ".batches", batches=BATCHES) for shape in shapes.bit_shapes()]
    made += [_product(shape, "square") for shape in shapes.record_shapes()]
    made += [_product(BATCH_SHAPE, "planned", ".batches", batches=BATCHES)]
    made += [_product(BATCH_SHAPE, "planned", ".kernels", batches=FEW, kernels="all", one_thread=True)]
    made += [_product(shape, "planned") for shape in shapes.peer_shapes()]
    if machine.gpu():
        made.append(Task("device", "all"))
    offline = shapes.offline_shapes() + shapes.compared_shapes() + shapes.index_shapes()[:5]
    made += [_database(shape, "one-shard", 1) for shape in dict.fromkeys(offline)]
    made += [_database(shapes.safe_browsing(), "shards-16", 1)]
    made += [_database(shape, "one-shard", 1) for shape in shapes.dimension_shapes() if shape.lwe != shapes.DEFAULT_LWE]
    made += [_database(shape, "planned", 1) for shape in shapes.peer_shapes() if shape.raw_bytes <= 1 << 30]
    made += [_database(shapes.record_shapes()[0], "square", 1)]
    made += [_database(shape, "planned", 1) for shape in [*shapes.sealpir_shapes(), shapes.small_record_shape()]]
    made += [_database(BATCH_SHAPE, "planned", machine.facts()["cores"])]
    made += [Task("packed", shape.name, shape) for shape in shapes.packed_shapes()]
    made += [Task("two-levels", shape.name, shape) for shape in shapes.two_level_shapes()]
    made += [
        Task("two-levels", f"{shape.name}.{matrices}-matrices", shape, (("matrices", matrices), ("builds", 1)))
        for shape, matrices in shapes.wire_shapes()
    ]
    made += [
        Task("large", f"{shape.name}.{levels}-levels", shape, (("shards", shards), ("levels", levels)))
        for shape, shards in shapes.large_shapes()
        for levels in (1, 2)
    ]
    made += [
        Task("several-keys", f"{shape.name}.64-keys", shape, (("keys_per_request", 64),))
        for shape in shapes.several_keys_shapes()
    ]
    made += [Task("overview", f"{shape.keys}x{shape.value_bytes}", shape) for shape in OVERVIEW_SHAPES]
    made.append(Task("load", LOAD_SHAPE.name, LOAD_SHAPE, (("shares", SHARES),)))
    made += [Task("application", name, arguments=(("name", name),)) for name in applications.BY_NAME]
    return list({task.file: task for task in made}.values())
