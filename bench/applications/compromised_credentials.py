"""Compromised credentials: is the SHA-1 of this password in a list of a hundred million, and how often was it seen?

Such a list (bench/datasets/password_hashes.py) is built, served, and asked: one hash at a time, and a file of a hundred
in one call, half of them in the list, each answer compared with the truth. The comparison is with the range services of
today: the client sends the first hex digits of the hash, and gets all hashes that begin with them.

`bench/report.py --only application.compromised-credentials --again` measures it."""

from __future__ import annotations

import hashlib
import json
import pathlib
import random
import shutil
import subprocess
import sys
import time

from common import Database, compare, measure_together
from report import ROOT, Bench, Figures, resident_bytes, spreads

NAME = "compromised-credentials"
GENERATOR = ROOT / "bench" / "datasets" / "password_hashes.py"
KEYS, CHECKED, TOGETHER_KEYS, TOGETHER = 100_000_000, 100, 10_000_000, 1000
KEYS_TINY, CHECKED_TINY, TOGETHER_TINY = 512, 10, 5
HEX_KEYS = ("--key-encoding", "hex")


def write_list(path: pathlib.Path, keys: int) -> Figures:
    """The list as `blindfuse build` reads it; gives what a range service would send of it."""
    ranges = path.with_suffix(".ranges.json")
    command = [sys.executable, GENERATOR, "--keys", str(keys), "--tsv", "--ranges", ranges]
    with path.open("wb") as file:
        subprocess.run(command, stdout=file, check=True)
    found: Figures = json.loads(ranges.read_text())
    ranges.unlink()
    return found


def pair_of(line: bytes) -> tuple[str, bytes]:
    key, _, seen = line.rstrip(b"\n").partition(b"\t")
    return key.decode(), seen


def credentials(path: pathlib.Path, wanted: int) -> dict[str, bytes | None]:
    """Hashes with the truth, mixed: the weak passwords that the list begins with, lines from all over it, and as many
    passwords that are not in it."""
    printed = subprocess.run([sys.executable, GENERATOR, "--known"], capture_output=True, text=True, check=True)
    known, present = printed.stdout.splitlines(), wanted // 2
    found: list[tuple[str, bytes | None]] = []
    with path.open("rb") as file:
        truth = dict(pair_of(file.readline()) for _ in known)
        for password in known[: 2 * present // 5]:
            key = hashlib.sha1(password.encode()).hexdigest().upper()
            found.append((key, truth[key]))
        others = present - len(found)
        for i in range(others):
            file.seek((2 * i + 1) * path.stat().st_size // (2 * others))
            file.readline()  # the rest of one
            found.append(pair_of(file.readline()))
    # Random passwords of this length are in no list, and certainly not among random hashes.
    chance = random.Random(1)
    absent = (f"{chance.getrandbits(128):032x}" for _ in range(wanted - present))
    found += [(hashlib.sha1(password.encode()).hexdigest().upper(), None) for password in absent]
    chance.shuffle(found)
    return dict(found)


def measure_one(bench: Bench) -> Figures:
    keys, wanted = (KEYS_TINY, CHECKED_TINY) if bench.tiny else (KEYS, CHECKED)
    source = bench.work / f"{NAME}.tsv"
    ranges = write_list(source, keys)
    asked = credentials(source, wanted)
    database = Database(bench, NAME, (source,), ("--mode", "hint", *HEX_KEYS), HEX_KEYS)
    try:
        report, builds = database.builds()
        directory_bytes = sum(path.stat().st_size for path in database.folder.rglob("*"))
        figures = {"keys": keys, "threads": bench.cores, "list_bytes": source.stat().st_size, "range": ranges,
                   "layout": report["layout"], "directory_bytes": directory_bytes, "build": builds}
        source.unlink()
        return figures | ask(database, asked)
    finally:
        source.unlink(missing_ok=True)
        database.remove()


def ask(database: Database, asked: dict[str, bytes | None]) -> Figures:
    """In every run a server that has just started, and a client without hints: sync, one look-up, the whole list."""
    bench, keys = database.bench, list(asked)
    serves, syncs, lookups, lists = [], [], [], []
    for run in range(bench.runs):
        shutil.rmtree(database.cache, ignore_errors=True)
        began = time.monotonic()
        with database.served() as (url, process):
            ready = time.monotonic() - began
            syncs.append(database.sync(url))
            yardstick = bench.yardstick(bench.cores)
            one = database.get(url, [keys[run % len(keys)]], "--prepare", "1")
            whole = database.get(url, keys, "--prepare", str(len(keys)))
            compare(asked, one)
            compare(asked, whole)
            peak = {"wall": one.cost["wall"], "client_peak_bytes": one.cost["client_peak_bytes"]}
            lookups.append(one.answers[0]["seconds"] | peak | yardstick)
            lists.append({"seconds": whole.cost["wall"]})
            serves.append({"seconds": ready, "resident_bytes": resident_bytes(process)})
    sizes = {name: whole.cost[name] for name in ("query_bytes", "response_bytes")}
    present = sum(value is not None for value in asked.values())
    return {"serve": spreads(serves), "sync": spreads(syncs), "lookup": spreads(lookups),
            "lookup_bytes": one.answers[0]["bytes"],
            "list": {"credentials": len(asked), "present": present} | sizes | spreads(lists)}


def measure_many(bench: Bench) -> Figures:
    """A smaller list, of which a database for several keys in a request fits the memory of the same machine."""
    keys, wanted = (KEYS_TINY, TOGETHER_TINY) if bench.tiny else (TOGETHER_KEYS, TOGETHER)
    source = bench.work / f"{NAME}.tsv"
    write_list(source, keys)
    try:
        return {"hashes": keys} | measure_together(bench, source, HEX_KEYS, HEX_KEYS, credentials(source, wanted))
    finally:
        source.unlink()


MEASURED = [f"application.{NAME}", f"application.{NAME}-together"]


def measure(bench: Bench, name: str) -> Figures:
    return measure_one(bench) if name == MEASURED[0] else measure_many(bench)
