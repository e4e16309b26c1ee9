#!/usr/bin/env python3
"""Measures what bench/results lacks of this machine, one JSON file a measurement, and writes the tables of
docs/BENCHMARKS.md and the chart in docs/figures, all from bench/results and bench/published.

A measurement is in `measurements()`, a table is a function that ends in _table, and its place in a page is between
<!-- begin: NAME --> and <!-- end: NAME -->. People write everything outside these markers."""

from __future__ import annotations

import argparse
import contextlib
import dataclasses
import datetime
import functools
import json
import math
import os
import pathlib
import re
import shutil
import statistics
import subprocess
import sys
import tempfile
import textwrap
import time
from typing import Any, Callable, Iterator, NamedTuple

ROOT = pathlib.Path(__file__).resolve().parents[1]
RESULTS = ROOT / "bench" / "results"
CHART = "figures/bytes-over-throughput.svg"  # in the folder of the pages
Figures = dict[str, Any]

# --- The machine, and the programs that are measured ---------------------------------------------------------------
@functools.cache
def machine() -> Figures:
    said = dict(re.findall(r"^(model name|cpu family|model|stepping)\s*: (.*)$",
                           pathlib.Path("/proc/cpuinfo").read_text(), re.MULTILINE))
    return {
        "cpu": said.get("model name", "unknown"),
        "cpu_family_model_stepping": "/".join(said.get(name, "") for name in ("cpu family", "model", "stepping")),
        "cores": len(os.sched_getaffinity(0)),
        "memory_bytes": os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES"),
        "system": f"{os.uname().sysname} {os.uname().release}",
    }


def folder_name() -> str:
    """The name of the folder with the results of machines like this one."""
    words = re.findall(r"[a-z0-9]+", machine()["cpu"].lower().split("@")[0])
    words = [word for word in words if word not in ("r", "tm", "cpu", "processor")]
    return "-".join([*words, *machine()["cpu_family_model_stepping"].split("/")[:2], f"{machine()['cores']}-cores"])


def pinned(cores: str) -> list[str]:
    return ["taskset", "--cpu-list", cores] if cores else []


class Failure(Exception):
    """A program failed, or gave a wrong answer."""


@dataclasses.dataclass(frozen=True)
class Outcome:
    output: str
    seconds: float
    peak_bytes: int  # the most memory that the program had resident

    def json(self) -> Any:
        return json.loads(self.output)

    def json_lines(self) -> list[Any]:
        return [json.loads(line) for line in self.output.splitlines() if line.startswith("{")]


@dataclasses.dataclass(frozen=True)
class Bench:
    """The programs, the folder for databases, and the patience of a run."""

    programs: pathlib.Path
    work: pathlib.Path
    runs: int = 5
    seconds: float = 3  # of load in each run
    tiny: bool = False  # databases of a few hundred keys, for tests

    @property
    def cores(self) -> int:
        return int(machine()["cores"])

    def run(self, name: str, *arguments: Any, cores: str = "", accepted: tuple[int, ...] = (0,),
            given: str = "") -> Outcome:
        """Fails when the program's status is not one of those that are accepted. `given` is its standard input."""
        with tempfile.TemporaryFile() as source, tempfile.TemporaryFile() as errors:
            source.write(given.encode())
            source.seek(0)
            began = time.monotonic()
            process = subprocess.Popen([*pinned(cores), self.programs / name, *map(str, arguments)], stdin=source,
                                       stdout=subprocess.PIPE, stderr=errors)
            output = process.stdout.read().decode()  # type: ignore[union-attr]
            _, status, usage = os.wait4(process.pid, 0)
            seconds, process.returncode = time.monotonic() - began, os.waitstatus_to_exitcode(status)
            errors.seek(0)
            if process.returncode not in accepted:
                text = errors.read().decode(errors="replace")[-2000:]
                raise Failure(f"{name} {' '.join(map(str, arguments))}: status {process.returncode}\n{text}")
            return Outcome(output, seconds, usage.ru_maxrss * 1024)

    @contextlib.contextmanager
    def server(self, database: pathlib.Path, *options: str, cores: str = "") -> Iterator[tuple[str, int]]:
        """Serves a database. Gives the server's URL and process."""
        ready, log = self.work / "url", self.work / "log"
        ready.unlink(missing_ok=True)
        with log.open("wb") as errors:
            process = subprocess.Popen([*pinned(cores), self.programs / "blindfuse", "serve", database, "--listen",
                                        "127.0.0.1:0", "--ready-file", ready, *options], stderr=errors)
        try:
            while not (ready.exists() and ready.read_text().strip()):
                if process.poll() is not None:
                    raise Failure(f"the server did not start:\n{log.read_text()[-2000:]}")
                time.sleep(0.02)
            yield ready.read_text().strip(), process.pid
        finally:
            process.terminate()
            process.wait()

    def yardstick(self, threads: int) -> Figures:
        """The machine at its best just now: streaming reads, and the multiply instruction from registers."""
        shape = "1024x96" if self.tiny else "131072x1040"  # 136 MB: larger than caches, and soon made
        line = self.run("blindfuse-bench-engine", "--shape", shape, "--batch", 1, "--rounds", 3, "--threads",
                        threads).json_lines()[0]
        return {name: line[name] for name in ("read_bytes_per_second", "peak_multiply_adds_per_second")}

    def builds(self, sources: list[pathlib.Path], database: pathlib.Path, *options: str, threads: int = 0,
               runs: int = 0) -> tuple[Figures, Figures]:
        """Builds a database from nothing in every run: the last report, and the spreads of times and memory."""
        threads, samples, report = threads or self.cores, [], {}
        for _ in range(runs or self.runs):
            shutil.rmtree(database, ignore_errors=True)
            yardstick = self.yardstick(threads)
            outcome = self.run("blindfuse", "build", *sources, "--output", database, *options, "--threads", threads,
                               "--json")
            report = outcome.json()
            samples.append(report["seconds"] | yardstick | {"wall": outcome.seconds, "peak_bytes": outcome.peak_bytes})
        return report, spreads(samples)

    def sync(self, url: str, cache: pathlib.Path) -> Figures:
        found = self.run("blindfuse-client", "sync", url, "--cache", cache, "--json").json()
        return {"seconds": found["seconds"], "bytes": found["bytes_fetched"], "shards": found["shards_fetched"]}


def resident_bytes(process: int) -> int:
    return 1024 * int(re.findall(r"VmRSS:\s+(\d+)", pathlib.Path(f"/proc/{process}/status").read_text())[0])


def spreads(samples: list[Figures]) -> Figures:
    """The median, the least, the most and all values of every member of the samples."""
    columns = {name: [sample[name] for sample in samples] for name in samples[0]}
    return {name: {"median": statistics.median(values), "least": min(values), "most": max(values), "runs": values}
            for name, values in columns.items()}


# --- Measurements --------------------------------------------------------------------------------------------------
# By the names that their files have: kind, number of keys, and bytes of a value.
OVERVIEW = [f"overview.keyword-{each}" for each in ("150000x256", "1000000x100", "1000000x1024", "100000000x16")]
MEGABYTE = [f"megabyte.keyword-{each}" for each in ("1000000x32", "4000000x16", "1000000x1024", "10000000x32",
                                                    "100000000x32", "32000000x256")]
HINT, PACKED, TWO_LEVELS = "hint mode", "packed mode", "two levels"
# Databases of the sizes that others publish, each built, served and asked with one thread: the name of its file, the
# panel of the chart (see PANELS), the mode, what the mode does not say, and the options of `build`.
DATABASES = [
    ("database.keyword-1048576x1016.two-levels", 1, TWO_LEVELS, "", "--levels 2 --shards 56"),
    ("database.index-16777216x64.two-levels", 1, TWO_LEVELS, "", "--levels 2 --shards 704"),
    ("database.index-16777216x64.packed", 1, PACKED, "", "--mode packed"),
    ("database.index-32768x32768.packed", 2, PACKED, "", "--mode packed"),
    ("database.index-4194304x256.hint", 0, HINT, "", "--mode hint"),
    ("database.keyword-1048576x1024.hint", 1, HINT, "", "--mode hint"),
    ("database.keyword-1048576x1024.hint-one-shard", 1, HINT, "one shard", "--mode hint --shards 1"),
    ("database.index-32768x32768.hint", 2, HINT, "", "--mode hint"),
    ("database.index-32768x32768.hint-two-shards", 2, HINT, "two shards", "--mode hint --shards 2"),
    ("database.index-65536x288.packed", None, PACKED, "", "--mode packed"),
    ("database.index-262144x288.packed", None, PACKED, "", "--mode packed"),
    ("database.index-1048576x288.packed", None, PACKED, "", "--mode packed"),
]


class Shape(NamedTuple):
    kind: str  # keyword or index
    keys: int
    value_bytes: int


def shape_of(name: str, tiny: bool = False) -> Shape:
    kind, keys, value_bytes = re.search(r"\.(\w+)-(\d+)x(\d+)", name).groups()  # type: ignore[union-attr]
    return Shape(kind, min(int(keys), 512 if tiny else 1 << 32), min(int(value_bytes), 64 if tiny else 1 << 17))


def write_input(bench: Bench, shape: Shape) -> pathlib.Path:
    """Pseudorandom values; the same shape has the same ones. An index database has values alone."""
    path, generator = bench.work / "source.tsv", ROOT / "bench" / "datasets" / "synthetic.py"
    command = f"{sys.executable} {generator} --keys {shape.keys} --value-bytes {shape.value_bytes}"
    select = " | cut -f2" if shape.kind == "index" else ""
    subprocess.run(["bash", "-o", "pipefail", "-c", f"{command}{select} >{path}"], check=True)
    return path


def measure_database(bench: Bench, name: str) -> Figures:
    """From records to look-ups: built several times, then served, synced with without a cache, and asked for keys from
    all over it. Those of the overview are built by default, with all threads, and are then asked by as many clients at
    once as a batch holds, on all cores but one, which makes the load."""
    shape, default = shape_of(name, bench.tiny), name in OVERVIEW
    options = "" if default else next(each[-1] for each in DATABASES if each[0] == name)
    options = re.sub(r"\d\d+", "2", options) if bench.tiny else options
    kind, threads = ["--index"] if shape.kind == "index" else [], bench.cores if default else 1
    database, cache, source = bench.work / "database", bench.work / "cache", write_input(bench, shape)
    report, builds = bench.builds([source], database, "--value-encoding", "hex", *kind, *options.split(),
                                  threads=threads)
    syncs, lookups, answer = [], [], {}
    with bench.server(database, "--threads", str(threads)) as (url, process):
        for _ in range(bench.runs):
            shutil.rmtree(cache, ignore_errors=True)
            syncs.append(bench.sync(url, cache))
        for i in range(bench.runs):
            yardstick, number = bench.yardstick(threads), i * (shape.keys - 1) // (bench.runs - 1)
            outcome = bench.run("blindfuse-client", "get", url, number if kind else f"key-{number}", "--cache", cache,
                                "--json", "--prepare", 1, "--threads", threads)
            answer = outcome.json()
            if not answer["found"]:
                raise Failure(f"key {number} was not found in {name}")
            lookups.append(answer["seconds"] | yardstick | {"client_peak_bytes": outcome.peak_bytes})
        figures = {"threads": threads, "layout": report["layout"], "build": builds, "sync": spreads(syncs),
                   "lookup": spreads(lookups), "lookup_bytes": answer["bytes"],
                   "server_resident_bytes": resident_bytes(process)}
    if default:
        engine = max(1, bench.cores - 1)
        with bench.server(database, "--threads", str(engine), cores=f"0-{engine - 1}") as (url, _):
            lines = [bench.run("blindfuse-bench-load", url, "--json", "--cache", cache, "--warmup", bench.seconds / 3,
                               "--seconds", bench.seconds, "--concurrency", 32, cores=str(bench.cores - 1)).json()
                     for _ in range(bench.runs)]
        if any(line["mismatches"] for line in lines):
            raise Failure(f"answers to the load of {name} were wrong")
        figures |= spreads([{"lookups_per_second_and_core": line["lookups_per_second"] / engine} for line in lines])
    return figures


def measure_megabyte(bench: Bench, name: str) -> Figures:
    """The layouts with the fewest bytes, planned. In packed mode the tables take at most as many bytes as the matrix,
    or 256 MiB."""
    shape = shape_of(name)
    plan = bench.run("blindfuse", "plan", "--keys", shape.keys, "--value-bytes", shape.value_bytes,
                     "--fixed-values", "--lookups-per-client", 100, "--json").json()

    def best(mode: str, levels: int) -> Figures:
        of_kind = [each for each in plan["layouts"] if (each["mode"], each.get("levels", 1)) == (mode, levels)
                   and each["packing_table_bytes"] <= max(256 << 20, each["matrix_bytes"])]
        layout = min(of_kind, key=lambda each: each["total_bytes"])
        return {name: layout[name] for name in ("query_bytes", "response_bytes", "sync_bytes", "options")}

    return {HINT: best("hint", 1), PACKED: best("packed", 1), TWO_LEVELS: best("packed", 2)}


@functools.cache
def applications() -> list[Any]:
    """The modules of bench/applications. Each has MEASURED, the names that its measure() takes."""
    sys.modules["report"] = sys.modules[__name__]
    sys.path[:0] = [str(ROOT / "bench" / "applications"), str(ROOT / "bench" / "datasets")]
    return [__import__(name) for name in ("compromised_credentials", "package_index", "safe_browsing")]


def measurements() -> dict[str, Callable[[Bench, str], Figures]]:
    """What measures, by the file's name."""
    made = {name: measure_megabyte for name in MEGABYTE}
    made |= {name: measure_database for name in [*OVERVIEW, *(each[0] for each in DATABASES)]}
    return made | {name: module.measure for module in applications() for name in module.MEASURED}


def json_text(value: Any, pad: str = "\n ") -> str:
    """JSON with a line for each object that contains no other one."""
    if not isinstance(value, dict) or not any(isinstance(each, dict) for each in value.values()):
        return json.dumps(value, ensure_ascii=False)
    lines = (f"{pad}{json.dumps(name)}: {json_text(each, pad + ' ')}" for name, each in value.items())
    return "{" + ",".join(lines) + pad[:-1] + "}"


def measure(programs: pathlib.Path, names: list[str], folder: pathlib.Path, patience: tuple[Any, ...]) -> list[str]:
    """Writes a file for each measurement; gives those that failed, after all others have been made. Databases are made
    in the folder of TMPDIR, up to 20 GB at a time."""
    failed = []
    folder.mkdir(parents=True, exist_ok=True)
    commit = subprocess.run(["git", "describe", "--always", "--abbrev=40", "--exclude=*", "--dirty"], cwd=ROOT,
                            capture_output=True, text=True, check=False)  # no repository, no commit
    for number, name in enumerate(names, 1):
        print(f"{number}/{len(names)}  {name}", file=sys.stderr)
        try:
            with tempfile.TemporaryDirectory(prefix="blindfuse-report-") as work:
                bench = Bench(programs, pathlib.Path(work), *patience)
                figures = measurements()[name](bench, name)
        except Failure as failure:
            failed.append(name)
            print(failure, file=sys.stderr)
            continue
        content = {
            "name": name, "runs": bench.runs, "commit": commit.stdout.strip(), "machine": machine(),
            "date": datetime.datetime.now(datetime.UTC).strftime("%Y-%m-%dT%H:%M:%SZ"), "figures": figures,
        }
        (folder / f"{name}.json").write_text(json_text(content) + "\n")
    return failed


# --- Results, and numbers for people -------------------------------------------------------------------------------
# The names that the pages give the machines, by family and model.
MACHINES = {"6/143": "Xeon (Sapphire Rapids)", "25/1": "EPYC (Zen 3)"}


def machine_name(content: Figures) -> str:
    family, model, _ = content["machine"]["cpu_family_model_stepping"].split("/")
    return MACHINES.get(f"{family}/{model}", content["machine"]["cpu"])


class Results:
    """The files of bench/results, of all machines."""

    def __init__(self, root: pathlib.Path) -> None:
        self.folders = [{path.name.removesuffix(".json"): json.loads(path.read_text())
                         for path in sorted(folder.glob("*.*.json"))} for folder in sorted(root.iterdir())]

    def one(self, name: str) -> Figures | None:
        """The latest measurement of that name."""
        found = [folder[name] for folder in self.folders if name in folder]
        return max(found, key=lambda content: str(content["date"]), default=None)

    def of_one_machine(self, names: list[str]) -> list[Figures]:
        """Those measurements, of the machine that has most of them, and last."""
        found = [[folder[name] for name in names if name in folder] for folder in self.folders]
        return max(found, key=lambda each: (len(each), [content["date"] for content in each]), default=[])


def at(content: Figures, place: str) -> Any:
    """A figure, by its path in the file; the median where it is a spread."""
    found = content["figures"]
    for step in place.split("."):
        found = found[int(step)] if isinstance(found, list) else found[step]
    return found["median"] if isinstance(found, dict) and "median" in found else found


def published(paper: str, table: str) -> list[Figures]:
    found = json.loads((ROOT / "bench" / "published" / f"{paper}.json").read_text())["tables"][table]
    return [dict(zip(found["columns"], row, strict=True)) for row in found["rows"]]


def digits(value: float, unit: str = "") -> str:
    """Three significant digits, thousands apart."""
    places = 2 - math.floor(math.log10(abs(value))) if value else 0
    return f"{round(value, places):,.{max(0, places)}f} {unit}".strip()


def in_units(*units: tuple[float, str]) -> Callable[[float], str]:
    def text(value: float) -> str:
        size, unit = next((each for each in units if abs(value) >= each[0]), units[-1])
        return digits(value / size, unit)
    return text


seconds = in_units((1, "s"), (1e-3, "ms"), (1e-6, "µs"))
binary = in_units((1 << 30, "GiB"), (1 << 20, "MiB"), (1 << 10, "KiB"), (1, "B"))
decimal = in_units((1e9, "GB"), (1e6, "MB"), (1e3, "kB"), (1, "B"))


@dataclasses.dataclass
class Table:
    block: str  # the name of the markers that it stands between
    title: str
    columns: list[str]
    rows: list[list[str]]
    sources: list[Figures]  # the measurements
    about: str = ""

    def text(self) -> str:
        found = self.sources
        machines = " and ".join(sorted({f"{machine_name(each)}, {each['machine']['cores']} cores" for each in found}))
        days = sorted({each["date"][:10] for each in found})
        commits = ", ".join(sorted({re.sub("^(.{10})[0-9a-f]*", r"\1", each["commit"]) for each in found}))
        runs = "".join({f"; medians of {each['runs']} runs" for each in found if "megabyte" not in each["name"]})
        made = f" {machines}; commit {commits}; {' to '.join(days[:1] + days[1:][-1:])}{runs}." if found else ""
        lines = [f"| {' | '.join(line)} |\n" for line in [self.columns, *self.rows]]
        lines.insert(1, f"|{'---|' * len(self.columns)}\n")
        about = textwrap.fill(f"**{self.title}.**{made} {self.about}".rstrip(), 120, break_on_hyphens=False,
                              break_long_words=False)
        return f"\n{about}\n\n{''.join(lines)}\n"


def overview_table(results: Results) -> Table:
    found = results.of_one_machine(OVERVIEW)
    return Table("overview", "With default options", [
        "keys x value", "build", "its memory", "server's memory", "first visit", "its time", "query", "response",
        "a look-up", "look-ups a second and core"], [
            [f"{at(each, 'layout.key_count'):,} x {at(each, 'layout.value_bytes')} B", seconds(at(each, "build.wall")),
             *(binary(at(each, what)) for what in ("build.peak_bytes", "server_resident_bytes", "sync.bytes")),
             seconds(at(each, "sync.seconds")),
             *(binary(at(each, f"lookup_bytes.{what}")) for what in ("query", "response")),
             seconds(at(each, "lookup.total")), digits(at(each, "lookups_per_second_and_core"))]
            for each in found], found)


def megabyte_table(results: Results) -> Table:
    found, modes, rows = results.of_one_machine(MEGABYTE), (HINT, PACKED, TWO_LEVELS), []
    for each in found:
        _, keys, value_bytes = shape_of(each["name"])
        rows.append([f"{keys:,} x {value_bytes:,} B",
                     *(digits(1e6 / sum(at(each, f"{mode}.{what}_bytes") for what in ("query", "response")))
                       for mode in modes),
                     *(decimal(at(each, f"{mode}.sync_bytes")) for mode in modes)])
    return Table("megabyte", "Look-ups by key in a megabyte of transfers", [
        "keys x value", *modes, *(f"once: {mode}" for mode in modes)], rows, found)


def databases_table(results: Results) -> Table:
    rows, found = [], []
    for name, _, mode, more, _ in DATABASES:
        if each := results.one(name):
            shape, found = shape_of(name), [*found, each]
            rows.append([
                f"{shape.keys:,} x {shape.value_bytes:,} B, {'by key' if shape.kind == 'keyword' else 'by number'}",
                f"{mode}{more and ', ' + more}", machine_name(each), seconds(at(each, "build.total")),
                *(binary(at(each, f"lookup_bytes.{what}")) for what in ("query", "response")),
                binary(at(each, "sync.bytes")), seconds(at(each, "lookup.server")), digits(speed(each))])
    return Table("databases", "With one thread", ["database", "mode", "machine", "build", "query", "response",
                                                  "once an epoch", "server", "GiB/s"], rows, found)


def peers_table(_: Results) -> Table:
    rows = [[f"**{row['scheme']}**" if row["scheme"] == "blindfuse" else row["scheme"], row["text"],
             f"{row['server_ms']:g} ms", f"{row['ratio']:.2f}"] for row in published("peers", "one query")]
    return Table("peers", "One query, one thread, EPYC (Zen 5)", ["", "database", "time", "of the reads"], rows, [])


def gpu_table(results: Results) -> Table:
    found = results.one("gpu.quarter") or {"scans": [], "pipelines": []}
    scans = {(each["kernel"], each["batch"]): each for each in found["scans"] if each["shape"] == "square"}
    answers = {each["batch"]: each for each in found["pipelines"]
               if (each["shape"], each["measurement"]) == ("square", "pipeline")}

    kernels = ["wgmma-tma", "wgmma", "mma", "dp4a"]

    def speed_of(kernel: str, batch: int, unit: str = "") -> str:
        scan = scans[kernel, batch]
        return digits(batch * scan["rows"] * scan["columns"] / scan["seconds"] / 1e12, unit)

    peak_rate = max((each["byte_multiply_adds_per_second"] for each in found.get("matrix_instructions", [])), default=1)
    rows = []
    for batch in sorted(answers):
        scan = scans["wgmma-tma", batch]
        read = scan["rows"] * scan["columns"] / scan["seconds"] / scan["read_bytes_per_second"]
        peak = 4 * batch * scan["rows"] * scan["columns"] / scan["seconds"] / peak_rate
        rows.append([str(batch), *(speed_of(kernel, batch, "TB/s") for kernel in kernels),
                     f"{read:.2f}", f"{peak:.2f}", digits(batch / answers[batch]["seconds"])])
    made = found.get("machine", {})
    about = f"{made.get('gpu')}, driver {made.get('driver')}; commit {found.get('commit')}; {found.get('date')}."
    columns = ["queries", *kernels, "of the reads", "of the peak", "answers a second"]
    return Table("gpu", "Product with 131,072 x 32,768 bytes on a GPU", columns, rows, [], about)


# --- The chart -----------------------------------------------------------------------------------------------------
PANELS = [("a bit or a byte", 1.2, 9000), ("records of 64 B to 1 KB", 20, 9000), ("records of 32 KB", 60, 4000)]
NOTHING, DOWN, UP = "at most 1 MB", "a hint of 3 to 222 MB", "keys of 4 to 15 MB, kept by the server"
GREY = "#57606a"
COLORS = {PACKED: "#0969da", TWO_LEVELS: "#1a7f37", HINT: "#bc4c00"}
PANEL_WIDTH, PANEL_HEIGHT, TOP, LEFT = 290, 330, 44, 46


@dataclasses.dataclass(frozen=True)
class Point:
    panel: int
    scheme: str
    kilobytes: float  # of query and response
    speed: float  # GiB/s of the database's values, one query, one core
    once: str
    label: str = ""

    @property
    def place(self) -> tuple[float, float]:
        _, least, most = PANELS[self.panel]
        x = math.log(self.kilobytes / least) / math.log(most / least)
        return (LEFT + self.panel * (PANEL_WIDTH + 14) + x * PANEL_WIDTH,
                TOP + PANEL_HEIGHT * (1 - math.log(self.speed / 0.15) / math.log(25 / 0.15)))


def speed(database: Figures) -> float:
    shape = shape_of(database["name"])
    return float(shape.keys * shape.value_bytes / 2**30 / at(database, "lookup.server"))


def points(results: Results) -> list[Point]:
    """Of databases with 1 GB, ours first."""
    made = []
    for name, panel, mode, more, _ in DATABASES:
        if panel is not None and (found := results.one(name)):
            each = (at(found, "lookup_bytes.query") + at(found, "lookup_bytes.response")) / 1024
            made.append(Point(panel, mode, each, speed(found), DOWN if mode == HINT else NOTHING, more))
    for panel, paper, table in ((0, "ypir", "table-2"), (0, "inspire", "table-2"), (0, "via", "table-1"),
                                (1, "inspire", "table-3"), (2, "ypir", "table-7"), (2, "inspire", "table-4")):
        for row in published(paper, table):
            if row["database_GB"] == 1:
                up, down = row.get("upload_KB", row.get("query_KB")), row.get("download_KB", row.get("response_KB"))
                once = DOWN if row.get("hint_MB") or row.get("offline_MB") else NOTHING
                once = UP if row["scheme"] in ("Respire", "VIA-C") else once
                made.append(Point(panel, row["scheme"], row.get("total_KB") or up + down, row["throughput_GB_s"], once))
    frodo, chalamet, *times = [
        row for paper, table in (("frodopir", "table-6"), ("chalametpir", "table-1"), ("chalametpir", "table-2"))
        for row in published(paper, table)
        if (row["keys"], row["value_bytes"], row.get("layout", "FrodoPIR")) == (1 << 20, 1024, "FrodoPIR")]
    made.append(Point(1, "FrodoPIR", frodo["query_KB"] + frodo["response_KB"], 1000 / frodo["response_ms"], DOWN))
    return made + [Point(1, "ChalametPIR", chalamet["query_kB_k3"] + chalamet["response_kB_k3"],
                         1000 / row["response_ms"], DOWN, {"m1": "M1"}.get(row["machine"], "EC2")) for row in times]


def mark(x: float, y: float, once: str, size: float, color: str, fill: str, said: str = "") -> str:
    """A square for a hint, a triangle for keys, or else a disc."""
    path = {DOWN: f"M{x - size:.1f} {y - size:.1f}h{2 * size}v{2 * size}h{-2 * size}z",
            UP: f"M{x:.1f} {y - size:.1f}l{size} {1.8 * size}h{-2 * size}z",
            NOTHING: f"M{x - size:.1f} {y:.1f}a{size} {size} 0 1 0 {2 * size} 0a{size} {size} 0 1 0 {-2 * size} 0"}
    return f'<path d="{path[once]}" stroke="{color}" fill="{fill}">{said and f"<title>{said}</title>"}</path>\n'


def chart(results: Results) -> str:
    """One look-up in 1 GB: bytes, and throughput of one core, with a panel for what a look-up returns."""
    every = points(results)
    taken = [(x - 5, y - 5, x + 5, y + 5) for x, y in (each.place for each in every)]  # marks and labels
    drawn, text = [], '<text x="{:.1f}" y="{:.1f}" text-anchor="{}"{}>{}</text>\n'

    def label(point: Point, words: str) -> None:
        """Where it covers least, and stays in the panel."""
        (x, y), width, left = point.place, 6.6 * len(words), LEFT + point.panel * (PANEL_WIDTH + 14)
        boxes = [(x + dx - width * part, y + dy, x + dx, {0: "start", 1: "end"}.get(part, "middle"))
                 for dx, part, dy in ((10, 0, 4), (-10, 1, 4), (0, 0.5, -11), (0, 0.5, 18), (10, 0, 12), (10, 0, -5),
                                      (-10, 1, 12), (-10, 1, -14), (0, 0.5, 30))]

        def cost(box: tuple[float, float, float, str]) -> float:
            begin, base, end = box[0], box[1], box[0] + width
            return 9 * (begin < left + 2 or end > left + PANEL_WIDTH) + sum(
                begin < x1 and end > x0 and base - 9 < y1 and base + 2 > y0 for x0, y0, x1, y1 in taken)
        begin, base, x, anchor = min(boxes, key=cost)
        taken.append((begin, base - 9, begin + width, base + 2))
        style = f' fill="{COLORS[point.scheme]}" font-weight="bold"' if point.scheme in COLORS else ""
        drawn.append(text.format(x, base, anchor, style, words))

    for number, (title, least, most) in enumerate(PANELS):
        left = LEFT + number * (PANEL_WIDTH + 14)
        drawn.append(text.format(left, TOP - 10, "start", ' font-weight="bold"', title[0].upper() + title[1:]))
        drawn.append(f'<path d="M{left} {TOP}v{PANEL_HEIGHT}h{PANEL_WIDTH}" stroke="{GREY}" fill="none"/>\n')
        for tick in (tick for tick in (3, 10, 30, 100, 300, 1000, 3000) if least <= tick <= most):
            x = Point(number, "", tick, 1, NOTHING).place[0]
            drawn.append(f'<path d="M{x:.1f} {TOP}v{PANEL_HEIGHT}" stroke="#eaeef2"/>\n')
            drawn.append(text.format(x, TOP + PANEL_HEIGHT + 15, "middle", "", f"{tick:,}"))
        for tick in (0.2, 0.5, 1, 2, 5, 10, 20):
            y = Point(number, "", least, tick, NOTHING).place[1]
            drawn.append(f'<path d="M{left} {y:.1f}h{PANEL_WIDTH}" stroke="#eaeef2"/>\n')
            drawn.append(text.format(left - 5, y + 4, "end", "", "" if number else tick))
        here = [each for each in every if each.panel == number]
        for each in reversed(here):
            color = COLORS.get(each.scheme)
            said = f"{each.scheme}: {digits(each.kilobytes)} KB, {digits(each.speed)} GB/s"
            drawn.append(mark(*each.place, each.once, 6 if color else 4, color or GREY, color or "#ffffff", said))
        for scheme in dict.fromkeys(each.scheme for each in here):
            mine = [each for each in here if each.scheme == scheme]
            if scheme.startswith("InsPIRe"):  # one scheme's settings
                line = "L".join("{:.1f} {:.1f}".format(*each.place) for each in mine)
                drawn.insert(0, f'<path d="M{line}" stroke="#afb8c1" fill="none"/>\n')
            for each in [*(each for each in mine if each.label), *[each for each in mine if not each.label][-1:]]:
                words = f"{scheme}{each.label and ', ' + each.label}"
                label(each, each.label if each.label and scheme in COLORS else words)
    width, bottom = LEFT + 3 * (PANEL_WIDTH + 14), TOP + PANEL_HEIGHT + 36
    drawn.append(text.format(LEFT, bottom, "start", "", "KB of query and response; upwards: GB/s of one core. Filled: "
                             "blindfuse, as measured; open: as published. In addition, a client once transfers:"))
    for number, once in enumerate((NOTHING, DOWN, UP)):
        drawn.append(mark(LEFT + 6 + 230 * number, bottom + 17, once, 4, GREY, "#ffffff"))
        drawn.append(text.format(LEFT + 18 + 230 * number, bottom + 21, "start", "", once))
    return (f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {bottom + 34}" font-family="sans-serif" '
            f'font-size="11" fill="#24292f" stroke-width="1.3">\n<rect width="{width}" height="{bottom + 34}" '
            f'fill="#ffffff"/>\n{"".join(drawn)}</svg>\n')


# --- Pages ---------------------------------------------------------------------------------------------------------
MARKERS = re.compile(r"<!-- begin: ([a-z0-9-]+) -->\n(.*?)<!-- end: \1 -->", re.DOTALL)


def rendered(results: Results, docs: pathlib.Path) -> dict[pathlib.Path, str]:
    """The pages and the chart as the results make them."""
    tables = [make(results) for make in (overview_table, megabyte_table, databases_table, peers_table, gpu_table)]
    texts = {table.block: table.text() for table in tables}
    page = docs / "BENCHMARKS.md"
    text = MARKERS.sub(lambda found: f"<!-- begin: {found[1]} -->\n{texts[found[1]]}<!-- end: {found[1]} -->",
                       page.read_text())
    return {docs / CHART: chart(results), page: text}


def main(command_line: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", default="", metavar="TEXT", help="measure what has this in its name")
    parser.add_argument("--again", action="store_true", help="measure also what is there already")
    parser.add_argument("--render", action="store_true", help="measure nothing, and write the pages and the chart")
    parser.add_argument("--check", action="store_true", help="fail if pages or chart are not what the results give")
    parser.add_argument("--tiny", action="store_true", help="measure databases of a few hundred keys, for tests")
    for name, default in (("bin", ROOT / "build" / "bin"), ("results", RESULTS), ("docs", ROOT / "docs")):
        parser.add_argument(f"--{name}", type=pathlib.Path, default=default, metavar="FOLDER")
    options = parser.parse_args(command_line)
    folder, failed = options.results / folder_name(), []
    if options.tiny and options.results == RESULTS:
        parser.error("--tiny needs --results: its figures are no measurements")
    if not (options.check or options.render):
        names = [name for name in measurements() if options.only in name
                 and (options.again or not (folder / f"{name}.json").exists())]
        failed = measure(options.bin.resolve(), names, folder, (2, 0.2, True) if options.tiny else ())
    made = rendered(Results(options.results), options.docs)
    stale = [path for path, text in made.items() if not path.exists() or path.read_text() != text]
    for path in stale:
        if options.check:
            print(f"{path} is not what bench/results gives; run bench/report.py --render")
        else:
            path.write_text(made[path])
    return 1 if failed or (options.check and stale) else 0


if __name__ == "__main__":
    sys.exit(main())
