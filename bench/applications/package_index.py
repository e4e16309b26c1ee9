#!/usr/bin/env python3
"""A package index: what to do with values of very different lengths. Debian's index says 786 bytes of a package in the
mean, and a hundred times that of one.

Every record of a database has room for its longest value, so the index is measured as it is, cut, and split into
parts under numbered keys (bench/datasets/parts.py): bytes and times of both sides, and what the number of parts tells
the server."""

from __future__ import annotations

import base64
import collections
import dataclasses
import itertools
import math
import pathlib
import random
import re
import shutil
import statistics
import subprocess
import sys
from typing import Any

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path[:0] = [str(ROOT / "bench" / "report"), str(ROOT / "bench" / "datasets")]
import parts as numbered  # noqa: E402
import together  # noqa: E402
from cells import Cell, Number, count, seconds, shown, size  # noqa: E402
from comparison import Comparison, Table  # noqa: E402
from measurements import Figures, Settings, folder_bytes, spreads, yardstick  # noqa: E402
from programs import Failure, metric  # noqa: E402

NAME = "package-index"
FILE = f"application.{NAME}.json"
TREE_NAME = f"{NAME}-tree"
PART_BYTES = (256, 512, 768, 1024, 1536, 2048, 4096, 8192)  # planned
BUILT = (1024, 2048)  # of those, built and asked
TREE, TREE_TINY = 100, 5  # packages of a dependency tree
TREE_ROOT = "gimp"  # or else the first package by name that has as many
TREE_BYTES = 1024  # of a paragraph
DEPENDS = re.compile(r"^(?:Pre-)?Depends:(.*(?:\n .*)*)", re.MULTILINE)
NOT_THERE = 3  # the client program's status when a key does not exist
LOOKUPS = 100  # of one client in one epoch

Index = dict[str, bytes]


@dataclasses.dataclass(frozen=True)
class Variant:
    """The contents of a record: all of a paragraph, its beginning, or a part of it."""

    name: str  # whole, cut or parts
    bytes: int  # room in a record; 0: as the longest needs

    def pairs(self, index: Index) -> Index:
        if self.name == "whole":
            return index
        if self.name == "cut":
            return {name: text[: self.bytes] for name, text in index.items()}
        split = {name: numbered.split(text, self.bytes) for name, text in index.items()}
        return {numbered.key_of(name, i): part for name, found in split.items() for i, part in enumerate(found, 1)}


def read_index(settings: Settings) -> Index:
    """The paragraph of each package that apt knows."""
    script = ROOT / "bench" / "datasets" / "debian_packages.py"
    done = subprocess.run(
        [sys.executable, script, "--run", "--paragraphs"], capture_output=True, text=True, check=False
    )
    if done.returncode != 0:
        raise Failure(done.stderr.strip())
    pairs = (line.split("\t") for line in done.stdout.splitlines())
    index = {name: bytes.fromhex(text) for name, text in pairs}
    if settings.tiny:
        longest = sorted(index, key=lambda name: len(index[name]))[-3:]
        index = {name: index[name][:5000] for name in [*sorted(index)[:200], *longest]}
    return index


def part_count(text: bytes, part_bytes: int) -> int:
    return len(numbered.split(text, part_bytes))


def lengths(index: Index) -> Figures:
    found = sorted(map(len, index.values()))
    return {
        "packages": len(found),
        "bytes": sum(found),
        "mean": statistics.fmean(found),
        "median": statistics.median(found),
        "p99": found[len(found) * 99 // 100],
        "longest": found[-1],
    }


def planned(settings: Settings, index: Index, part_bytes: int) -> Figures:
    """The bytes of a layout, with how many parts packages have. Exact."""
    counts = [part_count(text, part_bytes) for text in index.values()]
    layouts = settings.programs.run(
        "blindfuse", "plan", "--keys", str(sum(counts)), "--value-bytes", str(part_bytes), "--mode", "hint", "--json"
    ).json()["layouts"]
    chosen = next(layout for layout in layouts if layout["chosen"])
    return {
        "part_bytes": part_bytes,
        "parts": sum(counts),
        "mean_parts": statistics.fmean(counts),
        "most_parts": max(counts),
        "one_part_share": counts.count(1) / len(counts),
        "two_parts_share": sum(each <= 2 for each in counts) / len(counts),
        "bytes_of_lookup": chosen["query_bytes"] + chosen["response_bytes"],
        "layout": chosen,
    }


def revealed(index: Index, part_bytes: int) -> Figures:
    """What a server that counts queries learns about who asks for a package, by how many queries are made of it."""
    counts = [part_count(text, part_bytes) for text in index.values()]
    rules = {
        "as many as there are": counts,
        "the next power of two": [1 << (each - 1).bit_length() for each in counts],
        "two, or the next power of four": [2 if each <= 2 else 4 ** ((each - 1).bit_length() + 1 >> 1) for each in counts],
        "always two": [2] * len(counts),
    }
    found = {}
    for rule, queries in rules.items():
        groups = collections.Counter(queries)
        found[rule] = {
            "groups": len(groups),
            "smallest_group": min(groups.values()),
            "largest_share": max(groups.values()) / len(queries),
            "alone": sum(each == 1 for each in groups.values()),
            "mean_queries": statistics.fmean(queries),
            "whole_share": sum(a <= b for a, b in zip(counts, queries)) / len(queries),
        }
    return found


def write_pairs(path: pathlib.Path, pairs: Index) -> None:
    with path.open("w") as file:
        file.writelines(f"{key}\t{value.hex()}\n" for key, value in pairs.items())


def value_of(answer: dict[str, Any]) -> bytes | None:
    if not answer["found"]:
        return None
    value: str = answer["value"]
    return base64.b64decode(value) if answer["value_encoding"] == "base64" else value.encode()


class Client:
    """Looks packages up, in parts if there are any, and adds up what that took."""

    def __init__(self, settings: Settings, variant: Variant, url: str, cache: pathlib.Path) -> None:
        self.settings, self.variant, self.url, self.cache = settings, variant, url, cache

    def ask(self, keys: list[str], took: dict[str, float]) -> list[bytes | None]:
        # Debian's names of packages begin with a letter or a digit, so none looks like an option.
        outcome = self.settings.programs.run(
            "blindfuse-client", "get", self.url, *keys, "--cache", self.cache, "--json", accepted=(0, NOT_THERE)
        )
        answers = outcome.json_lines()
        took["seconds"] += outcome.seconds
        for answer in answers:
            took["queries"] += 1
            took["bytes"] += answer["bytes"]["query"] + answer["bytes"]["response"]
        # Keys of one request wait for it together, and say the same.
        took["server"] += sum(waited for waited, _ in itertools.groupby(each["seconds"]["server"] for each in answers))
        return [value_of(answer) for answer in answers]

    def get(self, name: str) -> tuple[bytes | None, dict[str, float]]:
        took: dict[str, float] = dict.fromkeys(("queries", "bytes", "server", "seconds"), 0)
        first = self.ask([name], took)[0]
        if first is None or self.variant.name != "parts":
            return first, took
        total = int(first.partition(b"\n")[0])
        others = [numbered.key_of(name, i) for i in range(2, total + 1)]
        rest = self.ask(others, took) if others else []
        if None in rest:
            raise Failure(f"a part of {name} was not found")
        return numbered.join([first, *(part for part in rest if part is not None)]), took


def build(settings: Settings, pairs: Index, database: pathlib.Path) -> Figures:
    source = settings.work / "pairs.tsv"
    write_pairs(source, pairs)
    samples = []
    try:
        for _ in range(settings.runs):
            shutil.rmtree(database, ignore_errors=True)
            beside = yardstick(settings, settings.cores)
            outcome = settings.programs.run(
                "blindfuse",
                "build",
                source,
                "--output",
                database,
                "--mode",
                "hint",
                "--value-encoding",
                "hex",
                "--allow-padding",
                "--json",
            )
            report = outcome.json()
            samples.append(report["seconds"] | beside | {"wall": outcome.seconds, "peak_bytes": outcome.peak_bytes})
    finally:
        source.unlink()
    return {"layout": report["layout"], "build": spreads(samples), "directory_bytes": folder_bytes(database)}


def measure_variant(settings: Settings, index: Index, variant: Variant) -> Figures:
    database, cache = settings.work / "database", settings.work / "cache"
    pairs = variant.pairs(index)
    chance = random.Random(1)
    usual = chance.sample(sorted(name for name in index if len(index[name]) <= 1000), settings.runs)
    longest = max(index, key=lambda name: len(index[name]))
    try:
        figures = build(settings, pairs, database)
        with settings.programs.server(database) as (url, metrics):
            client = Client(settings, variant, url, cache)
            synced = settings.programs.run("blindfuse-client", "sync", url, "--cache", cache, "--json").json()
            samples = []
            for name in usual:
                beside = yardstick(settings, settings.cores)
                samples.append(look_up(client, index, name) | beside)
            figures |= {
                "sync": {"bytes": synced["bytes_fetched"], "seconds": synced["seconds"]},
                "lookup": spreads(samples),
                "longest": look_up(client, index, longest),
                "server_resident_bytes": metric(metrics, "process_resident_memory_bytes"),
            }
            if client.get("no-such-package")[0] is not None:
                raise Failure("a package that does not exist was found")
        return {"variant": variant.name, "bytes": variant.bytes, "keys": len(pairs)} | figures
    finally:
        shutil.rmtree(database, ignore_errors=True)
        shutil.rmtree(cache, ignore_errors=True)


def look_up(client: Client, index: Index, name: str) -> dict[str, float]:
    """The cost of the look-up, after the answer has been compared with the index."""
    value, took = client.get(name)
    expected = index[name][: client.variant.bytes] if client.variant.name == "cut" else index[name]
    if value != expected:
        raise Failure(f"{name} came back wrong from {client.variant}")
    return took


def depends_on(index: Index, name: str) -> list[str]:
    """The first alternative of each dependency that is a package of the index, without its version."""
    found = ",".join(DEPENDS.findall(index[name].decode(errors="replace"))).split(",")
    names = (re.split(r"[\s:(|\[]", each.strip(), maxsplit=1)[0] for each in found)
    return [each for each in dict.fromkeys(names) if each in index]


def levels_of_tree(index: Index, root: str, wanted: int) -> list[list[str]]:
    """Level by level what a package depends on, the root first, until there are this many packages."""
    levels, known = [[root]], {root}
    while levels[-1] and len(known) < wanted:
        level = dict.fromkeys(name for each in levels[-1] for name in depends_on(index, each) if name not in known)
        levels.append(list(level)[: wanted - len(known)])
        known.update(levels[-1])
    return [level for level in levels if level]


def dependency_tree(index: Index, wanted: int) -> list[list[str]]:
    """Of the first package with this many; of the one with the most if none has."""
    best: list[list[str]] = []
    for name in [TREE_ROOT] * (TREE_ROOT in index) + sorted(index):
        levels = levels_of_tree(index, name, wanted)
        if sum(map(len, levels)) > sum(map(len, best)):
            best = levels
        if sum(map(len, best)) == wanted:
            break
    return best


def measure_tree(settings: Settings) -> Figures:
    """The packages of a dependency tree, whose names are known, in one call."""
    index = read_index(settings)
    wanted = TREE_TINY if settings.tiny else TREE
    levels = dependency_tree(index, wanted)
    names = [name for level in levels for name in level]
    # An index of a few packages may have no such tree.
    names += [name for name in sorted(index) if name not in names][: wanted - len(names)]
    pairs = Variant("cut", TREE_BYTES).pairs(index)
    source = settings.work / "tree.tsv"
    write_pairs(source, pairs)

    def check(answers: list[dict[str, Any]]) -> None:
        for answer in answers:
            if value_of(answer) != pairs[answer["key"]]:
                raise Failure(f"{answer['key']} came back wrong")

    try:
        found = together.measure(settings, source, "hex", [], [], names, check)
    finally:
        source.unlink()
    each = together.keys_per_request(settings)
    return found | {
        "root": names[0],
        "part_bytes": TREE_BYTES,
        "levels": len(levels),
        "requests_level_by_level": sum(math.ceil(len(level) / each) for level in levels),
    }


def measure(settings: Settings) -> Figures:
    index = read_index(settings)
    sizes = PART_BYTES[2:4] if settings.tiny else PART_BYTES
    built = [Variant("whole", 0)] + [Variant(name, each) for each in BUILT for name in ("cut", "parts")]
    return {
        "lengths": lengths(index),
        "planned": [planned(settings, index, each) for each in sizes],
        "revealed": revealed(index, BUILT[0]),
        "variants": [measure_variant(settings, index, variant) for variant in built],
    }


def label(variant: dict[str, Any]) -> str:
    return {
        "whole": "as it is",
        "cut": f"cut at {variant['bytes']} bytes",
        "parts": f"in parts of {variant['bytes']} bytes",
    }[variant["variant"]]


def of_variants(made: Comparison) -> Table:
    table = Table(
        NAME,
        "The index in records of different sizes",
        ["", "keys", "matrix", "built in", "server's memory", "once an epoch", "a usual package", "server's time", "the longest package",
         "server's time"],
    )
    found = made.results.find(FILE)
    for i, variant in enumerate(found.figures["variants"] if found else []):
        assert found is not None
        part = found.part("variants", i)
        matrix = part.number("layout", "row_count") * part.number("layout", "column_count")
        table.add(
            label(variant),
            count(part.number("keys")),
            size(matrix),
            seconds(part.number("build", "wall")),
            size(part.number("server_resident_bytes")),
            size(part.number("sync", "bytes")),
            size(part.number("lookup", "bytes")),
            seconds(part.number("lookup", "server")),
            size(part.number("longest", "bytes")),
            seconds(part.number("longest", "server")),
        )
    if found:
        table.about = (
            f"{found.figures['lengths']['packages']} packages. Usual are packages of up to 1000 bytes. Bytes are those of "
            "queries and responses, all parts together; the server's time is what the client waits for it, all round trips together."
        )
    return table


def of_sizes(made: Comparison) -> Table:
    table = Table(
        f"{NAME}-sizes",
        "Bytes over the size of a part",
        ["bytes of a part", "parts in all", "packages of one part", "of one or two", "parts of the longest", "hint", "query and response",
         f"{LOOKUPS} packages, hint included"],
        about=f"Exact. The last column: {LOOKUPS} packages of the mean number of parts.",
    )
    found = made.results.find(FILE)
    for i, each in enumerate(found.figures["planned"] if found else []):
        assert found is not None
        part = found.part("planned", i)
        hint = part.number("layout", "sync_bytes")
        once = part.number("bytes_of_lookup")
        table.add(
            str(each["part_bytes"]),
            count(part.number("parts")),
            shown(part.number("one_part_share") * 100, "%"),
            shown(part.number("two_parts_share") * 100, "%"),
            count(part.number("most_parts")),
            size(hint),
            size(once),
            size(hint + once * part.number("mean_parts") * LOOKUPS),
        )
    return table


def of_rules(made: Comparison) -> Table:
    table = Table(
        f"{NAME}-revealed",
        "What the number of queries tells the server",
        ["queries for a package", "different numbers", "packages that share the commonest", "packages of the rarest number",
         "numbers that one package has alone", "mean queries", "packages that come whole"],
    )
    found = made.results.find(FILE)
    if found is None:
        return table
    table.about = f"Parts of {BUILT[0]} bytes; all {found.figures['lengths']['packages']} packages alike. Exact."
    for rule in found.figures["revealed"]:
        part = found.part("revealed", rule)
        table.rows.append(
            [
                Cell(rule),
                count(part.number("groups")),
                shown(part.number("largest_share") * 100, "%"),
                count(part.number("smallest_group")),
                count(part.number("alone")),
                shown(part.number("mean_queries")),
                shown(part.number("whole_share") * 100, "%"),
            ]
        )
    return table


def of_tree(made: Comparison) -> Table:
    found = made.results.find(f"application.{TREE_NAME}.json")
    if found is None:
        return Table(TREE_NAME, "", [])
    tree = found.figures
    about = (
        f"What {tree['root']} depends on, {tree['levels']} levels of the tree, with the names known. Values are the "
        f"first {tree['part_bytes']} bytes of each paragraph. A client that learns the names level by level makes "
        f"{tree['requests_level_by_level']} requests for several keys."
    )
    return together.table(TREE_NAME, f"{tree['keys']} packages of a dependency tree", about, found)


def tables(made: Comparison) -> list[Table]:
    return [of_variants(made), of_tree(made), of_sizes(made), of_rules(made)]


if __name__ == "__main__":
    import measure as report

    sys.exit(report.main(["--only", f"application.{NAME}.", "--again", *sys.argv[1:]]))
