"""The measurements: each kind is a function from a task to its figures."""

import dataclasses
import functools
import json
import pathlib
import shutil
import statistics
import subprocess
import sys
from typing import Any

import machine
from programs import Failure, Programs, metric
from shapes import Shape, best_compared, layout_of

Figures = dict[str, Any]
YARDSTICK_SHAPE = "131072x1040"  # 136 MB: larger than caches, and soon made


@dataclasses.dataclass(frozen=True)
class Settings:
    programs: Programs
    work: pathlib.Path  # where databases are made, and removed
    runs: int = 5
    rounds: int = 3  # within one run of a program, of which it gives the median
    load_seconds: float = 3
    yardstick: str = YARDSTICK_SHAPE
    tiny: bool = False

    @property
    def cores(self) -> int:
        return machine.facts()["cores"]

    @property
    def threads(self) -> list[int]:
        return sorted({1, self.cores})


def spread(values: list[float]) -> Figures:
    return {"median": statistics.median(values), "least": min(values), "most": max(values), "runs": values}


def spreads(samples: list[dict[str, float]]) -> Figures:
    """A spread for every member that all samples have."""
    return {name: spread([sample[name] for sample in samples]) for name in samples[0]}


def plan(settings: Settings, shape: Shape, *options: str) -> dict[str, Any]:
    """In hint mode, unless options say otherwise."""
    return settings.programs.run(
        "blindfuse",
        "plan",
        "--keys",
        str(shape.keys),
        "--value-bytes",
        str(shape.value_bytes),
        "--fixed-values",
        "--lookups-per-client",
        "100",
        *(options or shape.options()),
        "--json",
    ).json()


def measure_plan(settings: Settings, shape: Shape) -> Figures:
    """Every layout's bytes. Exact, so once is enough."""
    return {"layouts": plan(settings, shape)["layouts"]}


# Of a layout: those that are the same on every machine.
COMPARED = (
    "mode", "shard_count", "query_bytes", "response_bytes", "sync_bytes", "total_bytes", "matrix_bytes",
    "packing_table_bytes", "options",
)


def measure_compared(settings: Settings, shape: Shape) -> Figures:
    """The bytes of the best layout of each kind. Exact, so once is enough."""
    found = plan(settings, shape, *shape.kind_options(), "--prefer", "bytes")["compared"]
    return {"compared": [{"levels": each.get("levels", 1)} | {name: each[name] for name in COMPARED} for each in found]}


def yardstick(settings: Settings, threads: int) -> dict[str, float]:
    """The machine at its best just now: streaming reads, and the multiply instruction."""
    line = settings.programs.run(
        "blindfuse-bench-engine",
        "--json",
        "--shape",
        settings.yardstick,
        "--batch",
        "1",
        "--rounds",
        "3",
        "--threads",
        str(threads),
    ).json_lines()[0]
    return {
        "read_bytes_per_second": line["read_bytes_per_second"],
        "peak_multiply_adds_per_second": line["peak_multiply_adds_per_second"],
    }


@functools.cache
def chosen_kernel(settings: Settings) -> str:
    """The kernel that most of some starts choose: timing may disturb a single choice."""
    names = [
        settings.programs.run(
            "blindfuse-bench-engine", "--json", "--shape", "64x6", "--batch", "1", "--rounds", "1", "--threads", "1"
        ).json_lines()[0]["kernel"]
        for _ in range(5)
    ]
    return statistics.mode(names)


def products(
    settings: Settings,
    rows: int,
    columns: int,
    batches: list[int],
    kernels: str = "auto",
    threads: list[int] | None = None,
) -> list[Figures]:
    """The engine alone, several runs of the program, each with its yardsticks in turns. A server's choice of a kernel
    is made once, as a server makes it."""
    found: dict[tuple[str, int, int], list[Figures]] = {}
    if kernels == "auto":
        kernels = chosen_kernel(settings)
    for _ in range(settings.runs):
        lines = settings.programs.run(
            "blindfuse-bench-engine",
            "--json",
            "--shape",
            f"{rows}x{columns}",
            "--kernel",
            kernels,
            "--batch",
            ",".join(map(str, batches)),
            "--threads",
            ",".join(map(str, threads or settings.threads)),
            "--rounds",
            str(settings.rounds),
        ).json_lines()
        for line in lines:
            found.setdefault((line["kernel"], line["threads"], line["batch"]), []).append(line)
    names = (
        "seconds",
        "effective_bytes_per_second",
        "read_bytes_per_second",
        "ratio",
        "peak_multiply_adds_per_second",
        "instruction_peak_ratio",
    )
    return [
        {"kernel": kernel, "threads": thread_count, "batch": batch}
        | spreads([{name: line[name] for name in names if line[name] is not None} for line in lines])
        for (kernel, thread_count, batch), lines in found.items()
    ]


def measure_product(
    settings: Settings,
    shape: Shape,
    layout: str,
    batches: list[int] | None = None,
    kernels: str = "auto",
    one_thread: bool = False,
) -> Figures:
    chosen = layout_of(plan(settings, shape), layout)
    return {
        "layout": chosen,
        "products": products(
            settings, chosen["row_count"], chosen["column_count"], batches or [1], kernels, [1] if one_thread else None
        ),
    }


def write_input(settings: Settings, shape: Shape) -> pathlib.Path:
    """Pseudorandom values; the same shape has the same ones."""
    path = settings.work / f"{shape.kind}.tsv"
    generator = machine.ROOT / "bench" / "datasets" / "synthetic.py"
    command = [sys.executable, generator, "--keys", str(shape.keys), "--value-bytes", str(shape.value_bytes)]
    with path.open("wb") as file:
        if shape.kind == "keyword":
            subprocess.run(command, stdout=file, check=True)
            return path
        # An index database has values alone.
        process = subprocess.Popen(command, stdout=subprocess.PIPE)
        subprocess.run(["cut", "-f2"], stdin=process.stdout, stdout=file, check=True)
        if process.wait() != 0:
            raise Failure("the data set could not be made")
    return path


def folder_bytes(folder: pathlib.Path) -> int:
    return sum(path.stat().st_size for path in folder.rglob("*") if path.is_file())


def measured_builds(
    settings: Settings,
    source: pathlib.Path,
    database: pathlib.Path,
    threads: int,
    *options: str,
    value_encoding: str = "hex",
) -> tuple[Figures, Figures]:
    """Builds the database from nothing in every run: the last report, and the spreads of times and memory."""
    figures = []
    for _ in range(settings.runs):
        shutil.rmtree(database, ignore_errors=True)
        yardsticks = yardstick(settings, threads)
        outcome = settings.programs.run(
            "blindfuse", "build", source, "--output", database, "--value-encoding", value_encoding, *options,
            "--threads", str(threads), "--json",
        )
        report = outcome.json()
        figures.append(report["seconds"] | yardsticks | {"wall": outcome.seconds, "peak_bytes": outcome.peak_bytes})
    return report, spreads(figures)


def measure_database(settings: Settings, shape: Shape, layout: str, threads: int) -> Figures:
    """In hint mode."""
    chosen = layout_of(plan(settings, shape), layout)
    options = [] if layout == "planned" else ["--shards", str(chosen["shard_count"])]
    return measured_database(settings, shape, threads, *shape.options(), *options)


def measure_packed(settings: Settings, shape: Shape) -> Figures:
    """In packed mode, in the planner's layout, with one thread."""
    return measured_database(settings, shape, 1, *shape.options("packed"))


def measure_two_levels(settings: Settings, shape: Shape, matrices: int = 1, builds: int | None = None) -> Figures:
    """With a second level, in the layout with the fewest bytes whose packing tables take at most `matrices` times as
    many bytes as the matrix; with one thread. Built `builds` times, or else as often as it is asked."""
    options = ("--mode", "packed", "--prefer", "bytes")
    compared = plan(settings, shape, *shape.kind_options(), *options)["compared"]
    best = best_compared([{"levels": 1} | each for each in compared], "packed", 2, matrices)
    if best is None:
        raise Failure(f"{shape.name} has no layout of two levels")
    options = (*shape.kind_options(), *compared[best]["options"].split())
    return measured_database(settings, shape, 1, *options, builds=builds)


def measure_large(settings: Settings, shape: Shape, shards: int, levels: int) -> Figures:
    """A packed database that fills the machine's memory, on all cores: built once, then asked by the native client, by
    the browser, where its tools are there, and by as many clients at once as a batch holds."""
    database, cache = settings.work / "database", settings.work / "cache"
    source = write_input(settings, shape)
    threads, seconds = settings.cores, 20 * settings.load_seconds
    # Tables of a thousand shards take gigabytes, however few keys there are.
    shards = 4 if settings.tiny else shards
    options = ["--mode", "packed", "--levels", str(levels), "--shards", str(shards)]
    try:
        once = dataclasses.replace(settings, runs=1)
        report, builds = measured_builds(once, source, database, threads, *shape.kind_options(), *options)
        source.unlink()
        figures = {"threads": threads, "layout": report["layout"], "directory_bytes": folder_bytes(database), "build": builds}
        figures |= ask(settings, shape, database, cache, threads, browser=True)
        with settings.programs.server(database, "--threads", str(threads)) as (url, metrics):
            line = settings.programs.run(
                "blindfuse-bench-load", url, "--metrics-url", f"unix:{metrics}", "--json", "--cache", cache,
                "--warmup", str(seconds / 3), "--seconds", str(seconds), "--concurrency", "32",
            ).json()
        return figures | {"lookups_per_second": line["lookups_per_second"], "mean_batch": line["mean_batch"]}
    finally:
        source.unlink(missing_ok=True)
        shutil.rmtree(database, ignore_errors=True)
        shutil.rmtree(cache, ignore_errors=True)


def browser_lookups(settings: Settings, shape: Shape, url: str, cache: pathlib.Path) -> Figures:
    """The native client and the browser in turns, with nothing prepared; nothing where the browser's tools are not."""
    tools = settings.programs.folder.parent / "web-tools"
    if not (tools / "complete").exists():
        return {}
    keys = ["0", "1"] if shape.kind == "index" else ["key-0", "key-1"]
    command = [
        sys.executable, machine.ROOT / "bench" / "web" / "first_answer.py", "--url", url, "--keys", *keys,
        "--rounds", str(settings.runs), "--client", settings.programs.path("blindfuse-client"), "--tools", tools,
    ]
    done = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    if done.returncode != 0:
        raise Failure(f"the browser's look-ups failed:\n{done.stderr[-2000:]}")
    return {"browser": json.loads(done.stdout)}


def measured_database(
    settings: Settings, shape: Shape, threads: int, *options: str, builds: int | None = None
) -> Figures:
    """A database from records to look-ups: built several times, then served, synced with and asked."""
    database, cache = settings.work / "database", settings.work / "cache"
    source = write_input(settings, shape)
    try:
        builder = dataclasses.replace(settings, runs=builds or settings.runs)
        report, spread_of_builds = measured_builds(builder, source, database, threads, *options)
        source.unlink()
        figures = {
            "threads": threads,
            "layout": report["layout"],
            "layout_reason": report["layout_reason"],
            "directory_bytes": folder_bytes(database),
            "build": spread_of_builds,
        }
        return figures | ask(settings, shape, database, cache, threads)
    finally:
        source.unlink(missing_ok=True)
        shutil.rmtree(database, ignore_errors=True)
        shutil.rmtree(cache, ignore_errors=True)


def ask(
    settings: Settings, shape: Shape, database: pathlib.Path, cache: pathlib.Path, threads: int, browser: bool = False
) -> Figures:
    syncs, lookups = [], []
    with settings.programs.server(database, "--threads", str(threads)) as (url, metrics):
        for _ in range(settings.runs):
            shutil.rmtree(cache, ignore_errors=True)
            outcome = settings.programs.run("blindfuse-client", "sync", url, "--cache", cache, "--json")
            syncs.append({"seconds": outcome.json()["seconds"], "bytes": outcome.json()["bytes_fetched"]})
        for i in range(settings.runs):
            machine_now = yardstick(settings, threads)
            number = i * (shape.keys - 1) // max(1, settings.runs - 1)
            key = str(number) if shape.kind == "index" else f"key-{number}"
            outcome = settings.programs.run(
                "blindfuse-client",
                "get",
                url,
                key,
                "--cache",
                cache,
                "--json",
                "--prepare",
                "1",
                "--threads",
                str(threads),
            )
            answer = outcome.json()
            if not answer["found"]:
                raise Failure(f"{key} was not found in {shape.name}")
            lookups.append(answer["seconds"] | machine_now | {"client_peak_bytes": outcome.peak_bytes})
        return (browser_lookups(settings, shape, url, cache) if browser else {}) | {
            "sync": spreads(syncs),
            "lookup": spreads(lookups),
            "lookup_bytes": answer["bytes"],
            "server_resident_bytes": metric(metrics, "process_resident_memory_bytes"),
        }


def cores_of_engine_and_load(settings: Settings) -> tuple[set[int], set[int]]:
    """All cores but the last, and the last; the same one twice where there is one."""
    every = range(settings.cores)
    return set(every[:-1]) or {0}, {every[-1]}


def measure_load(settings: Settings, shape: Shape, shares: list[float]) -> Figures:
    """Latency over load: the engine on all cores but the last, which makes the load, where there are two."""
    engine_cores, load_cores = cores_of_engine_and_load(settings)
    database = settings.work / "database"
    source = write_input(settings, shape)
    common = ["--json", "--cache", str(settings.work / "cache"), "--warmup", str(settings.load_seconds / 3)]
    common += ["--seconds", str(settings.load_seconds)]
    try:
        built = settings.programs.run(
            "blindfuse", "build", source, "--output", database, "--value-encoding", "hex", *shape.options(), "--json"
        ).json()
        with settings.programs.server(
            database, "--threads", str(len(engine_cores)), "--batch-max", "16", "--queue-max", "128", cores=engine_cores
        ) as (url, metrics):

            def load(*options: str) -> Figures:
                return settings.programs.run(
                    "blindfuse-bench-load", url, "--metrics-url", f"unix:{metrics}", *common, *options, cores=load_cores
                ).json()

            closed = [load("--concurrency", "16") for _ in range(settings.runs)]
            capacity = statistics.median(line["lookups_per_second"] for line in closed)
            if settings.tiny:
                shares = [shares[0], shares[-1]]
            open_loops = []
            for share in shares:
                lines = [load("--rate", f"{share * capacity:.3f}") for _ in range(settings.runs)]
                lines = [line for line in lines if line["latency_ms"]]
                if lines:
                    open_loops.append(
                        {"share": share, "rate": share * capacity}
                        | spreads(
                            [
                                line["latency_ms"]
                                | {
                                    "lookups_per_second": line["lookups_per_second"],
                                    "mean_batch": line["mean_batch"] or 0,
                                }
                                for line in lines
                            ]
                        )
                    )
            return {
                "layout": built["layout"],
                "engine_threads": len(engine_cores),
                "capacity": spread([line["lookups_per_second"] for line in closed]),
                "yardstick": yardstick(settings, len(engine_cores)),
                "loads": open_loops,
            }
    finally:
        source.unlink(missing_ok=True)
        shutil.rmtree(database, ignore_errors=True)
        shutil.rmtree(settings.work / "cache", ignore_errors=True)


def measure_overview(settings: Settings, shape: Shape) -> Figures:
    """The figures that operators and clients get with default options: a database is built, served on all cores and
    asked by one client; then asked by as many clients at once as a batch holds, on all cores but one, which makes the
    load."""
    database, cache = settings.work / "database", settings.work / "cache"
    source = write_input(settings, shape)
    engine_cores, load_cores = cores_of_engine_and_load(settings)
    try:
        report, builds = measured_builds(settings, source, database, settings.cores)
        source.unlink()
        figures = {
            "threads": settings.cores,
            "layout": report["layout"],
            "directory_bytes": folder_bytes(database),
            "build": builds,
        } | ask(settings, shape, database, cache, settings.cores)
        with settings.programs.server(database, "--threads", str(len(engine_cores)), cores=engine_cores) as (url, metrics):
            common = ["--json", "--cache", str(cache), "--warmup", str(settings.load_seconds / 3)]
            lines = [
                settings.programs.run(
                    "blindfuse-bench-load", url, "--metrics-url", f"unix:{metrics}", *common,
                    "--seconds", str(settings.load_seconds), "--concurrency", "32", cores=load_cores,
                ).json()
                for _ in range(settings.runs)
            ]
        per_core = [line["lookups_per_second"] / len(engine_cores) for line in lines]
        return figures | {"engine_threads": len(engine_cores), "lookups_per_second_and_core": spread(per_core)}
    finally:
        source.unlink(missing_ok=True)
        shutil.rmtree(database, ignore_errors=True)
        shutil.rmtree(cache, ignore_errors=True)


def measure_device(settings: Settings) -> Figures:
    """A GPU's engine; its program gives medians of rounds."""
    outcome = settings.programs.run("blindfuse-bench-cuda", "--json", "--kernels", "all")
    return {"lines": outcome.json_lines()}
