"""A package index: what to do with values of very different lengths. Debian's index says 786 bytes of a package in the
mean, and a hundred times that of one.

Every record of a database has room for its longest value, so the index is measured as it is, cut, and split into
parts under numbered keys (bench/datasets/parts.py): bytes and times of both sides, and what the number of parts tells
the server.

`bench/report.py --only application.package-index --again` measures it."""

from __future__ import annotations

import collections
import dataclasses
import math
import pathlib
import random
import re
import statistics
import subprocess
import sys

import parts as numbered
from common import KEYS_PER_REQUEST, KEYS_PER_REQUEST_TINY, Database, measure_together
from report import ROOT, Bench, Failure, Figures, resident_bytes, spreads

NAME = "package-index"
PART_BYTES = (256, 512, 768, 1024, 1536, 2048, 4096, 8192)  # planned
BUILT = (1024, 2048)  # of those, built and asked
TREE, TREE_TINY = 100, 5  # packages of a dependency tree
TREE_ROOT = "gimp"
TREE_BYTES = 1024  # of a paragraph
DEPENDS = re.compile(r"^(?:Pre-)?Depends:(.*(?:\n .*)*)", re.MULTILINE)
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


def read_index(bench: Bench) -> Index:
    """The paragraph of each package that apt knows."""
    script = ROOT / "bench" / "datasets" / "debian_packages.py"
    done = subprocess.run([sys.executable, script], capture_output=True, text=True)
    if done.returncode != 0:
        raise Failure(done.stderr.strip())
    pairs = (line.split("\t") for line in done.stdout.splitlines())
    index = {name: bytes.fromhex(text) for name, text in pairs}
    if bench.tiny:
        longest = sorted(index, key=lambda name: len(index[name]))[-3:]
        index = {name: index[name][:5000] for name in [*sorted(index)[:200], *longest]}
    return index


def part_counts(index: Index, part_bytes: int) -> list[int]:
    return [len(numbered.split(text, part_bytes)) for text in index.values()]


def planned(bench: Bench, index: Index, part_bytes: int) -> Figures:
    """The bytes of a layout, with how many parts packages have. Exact."""
    counts = part_counts(index, part_bytes)
    layouts = bench.run("blindfuse", "plan", "--keys", sum(counts), "--value-bytes", part_bytes, "--mode", "hint",
                        "--json").json()["layouts"]
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
    counts = part_counts(index, part_bytes)
    rules = {
        "as many as there are": counts,
        "the next power of two": [1 << (each - 1).bit_length() for each in counts],
        "two, or the next power of four": [2 if each <= 2 else 4 ** ((each - 1).bit_length() + 1 >> 1)
                                           for each in counts],
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


def look_up(database: Database, variant: Variant, url: str, index: Index, name: str) -> dict[str, float]:
    """The cost of a package, in parts if there are any, after the answer has been compared with the index."""
    call = database.get(url, [name])
    value, cost = call.values[0], {what: call.cost[what] for what in ("queries", "bytes", "server", "wall")}
    if variant.name == "parts" and value is not None:
        keys = [numbered.key_of(name, i) for i in range(2, int(value.partition(b"\n")[0]) + 1)]
        rest = database.get(url, keys) if keys else None
        value = numbered.join([value, *(part or b"" for part in rest.values)] if rest else [value])
        cost = {what: each + (rest.cost[what] if rest else 0) for what, each in cost.items()}
    if value != (index[name][: variant.bytes] if variant.name == "cut" else index[name]):
        raise Failure(f"{name} came back wrong from {variant}")
    return cost


def measure_variant(bench: Bench, index: Index, variant: Variant) -> Figures:
    source, pairs = bench.work / "pairs.tsv", variant.pairs(index)
    write_pairs(source, pairs)
    usual = random.Random(1).sample(sorted(name for name in index if len(index[name]) <= 1000), bench.runs)
    longest = max(index, key=lambda name: len(index[name]))
    database = Database(bench, NAME, (source,), ("--mode", "hint", "--value-encoding", "hex", "--allow-padding"))
    try:
        report, builds = database.builds()
        with database.served() as (url, process):
            synced, samples = database.sync(url), []
            for name in usual:
                yardstick = bench.yardstick(bench.cores)
                samples.append(look_up(database, variant, url, index, name) | yardstick)
            found = look_up(database, variant, url, index, longest)
            memory = resident_bytes(process)
            if database.get(url, ["no-such-package"]).values != [None]:
                raise Failure("a package that does not exist was found")
        return {"variant": variant.name, "bytes": variant.bytes, "keys": len(pairs), "layout": report["layout"],
                "build": builds, "sync": synced, "lookup": spreads(samples), "longest": found,
                "server_resident_bytes": memory}
    finally:
        source.unlink()
        database.remove()


def measure_variants(bench: Bench) -> Figures:
    index = read_index(bench)
    built = [Variant("whole", 0)] + [Variant(name, each) for each in BUILT for name in ("cut", "parts")]
    return {
        "packages": len(index),
        "planned": [planned(bench, index, each) for each in (PART_BYTES[2:4] if bench.tiny else PART_BYTES)],
        "revealed": revealed(index, BUILT[0]),
        "variants": [measure_variant(bench, index, variant) for variant in built],
    }


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


def measure_tree(bench: Bench) -> Figures:
    """The packages of a dependency tree, whose names are known, in one call."""
    index, wanted = read_index(bench), TREE_TINY if bench.tiny else TREE
    levels = levels_of_tree(index, TREE_ROOT if TREE_ROOT in index else min(index), wanted)
    names = [name for level in levels for name in level]
    # An index of a few packages may have no such tree.
    names += [name for name in sorted(index) if name not in names][: wanted - len(names)]
    pairs = Variant("cut", TREE_BYTES).pairs(index)
    source = bench.work / "tree.tsv"
    write_pairs(source, pairs)
    try:
        expected: dict[str, bytes | None] = {name: pairs[name] for name in names}
        found = measure_together(bench, source, ("--value-encoding", "hex"), (), expected)
    finally:
        source.unlink()
    each = KEYS_PER_REQUEST_TINY if bench.tiny else KEYS_PER_REQUEST
    return found | {"root": names[0], "part_bytes": TREE_BYTES, "levels": len(levels),
                    "requests_level_by_level": sum(math.ceil(len(level) / each) for level in levels)}


MEASURED = [f"application.{NAME}", f"application.{NAME}-tree"]


def measure(bench: Bench, name: str) -> Figures:
    return measure_variants(bench) if name == MEASURED[0] else measure_tree(bench)
