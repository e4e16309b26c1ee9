#!/usr/bin/env python3
"""Compromised credentials: is the SHA-1 of this password in a list of a hundred million, and how often was it seen?

Such a list (bench/datasets/password_hashes.py) is built, served, and asked: one hash at a time, and a file of a hundred
in one call, half of them in the list, each answer compared with the truth. The comparison is with the range services of
today: the client sends the first hex digits of the hash, and gets all that begin with them."""

from __future__ import annotations

import dataclasses
import hashlib
import json
import pathlib
import random
import shutil
import subprocess
import sys
import time
from typing import Any

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "bench" / "report"))
import together  # noqa: E402
from cells import NOTHING, Cell, Number, count, ratio, seconds, shown, size  # noqa: E402
from comparison import Comparison, Table  # noqa: E402
from measurements import Figures, Settings, folder_bytes, spread, spreads, yardstick  # noqa: E402
from programs import Failure, metric  # noqa: E402
from results import Result  # noqa: E402

NAME = "compromised-credentials"
FILE = f"application.{NAME}.json"
TOGETHER_NAME = f"{NAME}-together"
GENERATOR = ROOT / "bench" / "datasets" / "password_hashes.py"
KEYS, KEYS_TINY = 100_000_000, 512
CHECKED, CHECKED_TINY = 100, 10  # credentials in the file; half of them are in the list
TOGETHER_KEYS, TOGETHER_KEYS_TINY = 10_000_000, 512  # of the list for many credentials in one call
TOGETHER, TOGETHER_TINY = 1000, 5  # credentials in that call
NOT_THERE = 3  # the client program's status when a key does not exist


@dataclasses.dataclass(frozen=True)
class Credential:
    hash: str  # SHA-1, hex
    seen: int | None  # the truth; None: not in the list


def hash_of(password: str) -> str:
    return hashlib.sha1(password.encode()).hexdigest().upper()


def known_passwords() -> list[str]:
    """The weak ones that the list begins with."""
    return subprocess.run(
        [sys.executable, GENERATOR, "--known"], capture_output=True, text=True, check=True
    ).stdout.splitlines()


def write_list(path: pathlib.Path, keys: int) -> Figures:
    """The list as `blindfuse build` reads it; gives what a range service would send of it."""
    ranges = path.with_suffix(".ranges.json")
    with path.open("wb") as file:
        subprocess.run(
            [sys.executable, GENERATOR, "--keys", str(keys), "--tsv", "--ranges", ranges], stdout=file, check=True
        )
    found: Figures = json.loads(ranges.read_text())
    ranges.unlink()
    return found


def _of_line(line: bytes) -> Credential:
    key, _, seen = line.decode().rstrip("\n").partition("\t")
    return Credential(key, int(seen))


def credentials(path: pathlib.Path, wanted: int) -> list[Credential]:
    """Those to check, mixed: well-known passwords, lines from all over the list, and as many passwords that are not in
    it."""
    present = wanted // 2
    known = known_passwords()
    with path.open("rb") as file:
        truth = {each.hash: each for each in (_of_line(file.readline()) for _ in known)}
        found = [truth[hash_of(password)] for password in known[: 2 * present // 5]]
        others = present - len(found)
        for i in range(others):
            file.seek((2 * i + 1) * path.stat().st_size // (2 * others))
            file.readline()  # the rest of one
            found.append(_of_line(file.readline()))
    # Random passwords of this length are in no list, and certainly not among random hashes.
    chance = random.Random(1)
    found += [Credential(hash_of(f"{chance.getrandbits(128):032x}"), None) for _ in range(wanted - present)]
    chance.shuffle(found)
    return found


def build(settings: Settings, source: pathlib.Path, database: pathlib.Path) -> Figures:
    samples, report = [], {}
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
            "--key-encoding",
            "hex",
            "--threads",
            str(settings.cores),
            "--json",
        )
        report = outcome.json()
        samples.append(report["seconds"] | beside | {"wall": outcome.seconds, "peak_bytes": outcome.peak_bytes})
    return {
        "layout": report["layout"],
        "layout_reason": report["layout_reason"],
        "directory_bytes": folder_bytes(database),
        "build": spreads(samples),
    }


@dataclasses.dataclass(frozen=True)
class Client:
    settings: Settings
    url: str
    cache: pathlib.Path

    def options(self, prepare: int) -> list[str]:
        return [
            "--cache",
            str(self.cache),
            "--key-encoding",
            "hex",
            "--json",
            "--prepare",
            str(prepare),
            "--threads",
            str(self.settings.cores),
        ]

    def sync(self) -> Figures:
        outcome = self.settings.programs.run("blindfuse-client", "sync", self.url, "--cache", self.cache, "--json")
        return {"seconds": outcome.json()["seconds"], "bytes": outcome.json()["bytes_fetched"]}

    def ask_one(self, asked: Credential) -> tuple[Figures, Figures]:
        """Seconds and memory of a look-up, and its bytes."""
        outcome = self.settings.programs.run(
            "blindfuse-client",
            "get",
            self.url,
            asked.hash,
            *self.options(prepare=1),
            accepted=(0 if asked.seen is not None else NOT_THERE,),
        )
        answer = outcome.json()
        compare([asked], [answer])
        return answer["seconds"] | {"wall": outcome.seconds, "client_peak_bytes": outcome.peak_bytes}, answer["bytes"]

    def check_list(self, path: pathlib.Path, expected: list[Credential]) -> Figures:
        """All hashes of a file in one call, as a shell would do it."""
        began = time.monotonic()
        with path.open("rb") as file:
            process = subprocess.run(
                [
                    self.settings.programs.path("blindfuse-client"),
                    "get",
                    self.url,
                    *self.options(prepare=len(expected)),
                ],
                stdin=file,
                check=False,
                capture_output=True,
                text=True,
            )
        wall = time.monotonic() - began
        if process.returncode != NOT_THERE:
            raise Failure(f"the list was not checked: status {process.returncode}\n{process.stderr[-2000:]}")
        answers = [json.loads(line) for line in process.stdout.splitlines()]
        compare(expected, answers)
        return {
            "seconds": wall,
            "query_bytes": sum(answer["bytes"]["query"] for answer in answers),
            "response_bytes": sum(answer["bytes"]["response"] for answer in answers),
        }


def compare(expected: list[Credential], answers: list[Figures]) -> None:
    """Fails when an answer is not the truth."""
    if len(answers) != len(expected):
        raise Failure(f"{len(answers)} answers to {len(expected)} look-ups")
    for asked, answer in zip(expected, answers):
        value = answer["value"] if answer["found"] else None
        truth = None if asked.seen is None else str(asked.seen)
        if (answer["key"], value) != (asked.hash, truth):
            raise Failure(f"{asked.hash}: the answer is {value} and should be {truth}")


def ask(settings: Settings, database: pathlib.Path, asked: list[Credential]) -> Figures:
    """In every run a server that has just started and a client without hints: sync, one look-up, and the whole list."""
    hashes, cache = settings.work / "hashes.txt", settings.work / "cache"
    hashes.write_text("".join(f"{each.hash}\n" for each in asked))
    serves, syncs, lookups, lists = [], [], [], []
    sizes: Figures = {}
    try:
        for run in range(settings.runs):
            shutil.rmtree(cache, ignore_errors=True)
            began = time.monotonic()
            with settings.programs.server(database, "--threads", str(settings.cores)) as (url, metrics):
                ready = time.monotonic() - began
                client = Client(settings, url, cache)
                syncs.append(client.sync())
                beside = yardstick(settings, settings.cores)
                took, sizes = client.ask_one(asked[run % len(asked)])
                lookups.append(took | beside)
                lists.append(client.check_list(hashes, asked))
                memory = metric(metrics, "process_resident_memory_bytes")
                serves.append({"seconds": ready, "resident_bytes": memory})
    finally:
        hashes.unlink(missing_ok=True)
        shutil.rmtree(cache, ignore_errors=True)
    return {
        "serve": spreads(serves),
        "sync": spreads(syncs),
        "lookup": spreads(lookups),
        "lookup_bytes": sizes,
        "list": {
            "credentials": len(asked),
            "present": sum(each.seen is not None for each in asked),
            "query_bytes": lists[-1]["query_bytes"],
            "response_bytes": lists[-1]["response_bytes"],
            "seconds": spread([each["seconds"] for each in lists]),
        },
    }


def measure_together(settings: Settings) -> Figures:
    """A smaller list, of which a database for several keys in a request fits the memory of the same machine, and many
    credentials in one call."""
    keys, wanted = (TOGETHER_KEYS_TINY, TOGETHER_TINY) if settings.tiny else (TOGETHER_KEYS, TOGETHER)
    source = settings.work / f"{TOGETHER_NAME}.tsv"
    write_list(source, keys)
    asked = credentials(source, wanted)
    truth = {each.hash: each for each in asked}

    def check(answers: list[dict[str, Any]]) -> None:
        compare([truth[answer["key"]] for answer in answers], answers)

    hex_keys = ["--key-encoding", "hex"]
    hashes = list(truth)
    try:
        return {"hashes": keys} | together.measure(settings, source, "utf8", hex_keys, hex_keys, hashes, check)
    finally:
        source.unlink()


def measure(settings: Settings) -> Figures:
    keys, wanted = (KEYS_TINY, CHECKED_TINY) if settings.tiny else (KEYS, CHECKED)
    source, database = settings.work / f"{NAME}.tsv", settings.work / "database"
    try:
        began = time.monotonic()
        ranges = write_list(source, keys)
        figures = {
            "keys": keys,
            "threads": settings.cores,
            "generation_seconds": time.monotonic() - began,
            "list_bytes": source.stat().st_size,
            "range": ranges,
        }
        asked = credentials(source, wanted)
        figures |= build(settings, source, database)
        source.unlink()
        figures |= ask(settings, database, asked)
        return figures
    finally:
        source.unlink(missing_ok=True)
        shutil.rmtree(database, ignore_errors=True)


def of_costs(found: Result) -> Table:
    figures = found.figures
    checked, sample = figures["list"]["credentials"], figures["range"]["sample"]
    table = Table(
        NAME,
        f"{figures['keys']:,} hashes, from list to answer",
        ["", "time", "sent", "received", "memory", "the server learns of a hash"],
        about=f"Client and server on the same {figures['threads']} cores, each with as many threads. Bytes are those "
        "of bodies, without HTTP's headers. The server's memory is what it had resident after all look-ups, that of "
        "the others the most they ever had. A look-up's time begins with making the query, of which nothing was "
        f"prepared ahead. The list: {checked} hashes, {figures['list']['present']} of them in the database, in one "
        "call of the client program; its time is the whole program's. Every answer was compared with the truth. "
        "Range requests are arithmetic over the same list: the mean of all "
        f"{figures['range']['prefixes']:,} prefixes, and compressed the range of {sample['prefix']}, which has "
        f"{sample['lines']} lines.",
    )
    bits = count(found.number("range", "prefix_bits"))
    learned, nothing = dataclasses.replace(bits, text=f"{bits.text} bits"), Cell("nothing")
    prefix, range_bytes = found.number("range", "prefix_digits"), found.number("range", "mean_bytes")
    compressed = found.number("range", "sample", "gzip_bytes")
    once, lookup, whole = found.part("sync"), found.part("lookup_bytes"), found.part("list")
    number = whole.number("credentials")

    def add(
        label: str,
        took: Number | None = None,
        sent: Number | None = None,
        received: Number | None = None,
        memory: Number | None = None,
        learns: Cell = NOTHING,
    ) -> None:
        table.add(label, seconds(took), size(sent), size(received), size(memory), learns)

    add("build", found.number("build", "wall"), memory=found.number("build", "peak_bytes"))
    add("serve, until it is ready", found.number("serve", "seconds"), memory=found.number("serve", "resident_bytes"))
    add("a client, once an epoch", once.number("seconds"), received=once.number("bytes"), learns=nothing)
    add(
        "a look-up",
        found.number("lookup", "total"),
        lookup.number("query"),
        lookup.number("response"),
        found.number("lookup", "client_peak_bytes"),
        nothing,
    )
    add(
        f"the list of {checked}",
        whole.number("seconds"),
        whole.number("query_bytes"),
        whole.number("response_bytes"),
        learns=nothing,
    )
    add("instead, a range request", None, prefix, range_bytes, learns=learned)
    add("the same, compressed", None, prefix, compressed, learns=learned)
    add(f"range requests for the list of {checked}", None, prefix * number, range_bytes * number, learns=learned)
    return table


def of_ranges(found: Result) -> Table:
    checked, lines = found.figures["list"]["credentials"], found.figures["range"]["lines"]
    table = Table(
        f"{NAME}-range",
        "Private look-ups compared with range requests",
        ["bytes in all", "range requests", "private look-ups", "private / range"],
        about="Sent and received. Ranges are not compressed here, and have "
        f"{lines['least']} to {lines['most']} lines each.",
    )

    def add(label: str, theirs: Number, ours: Number) -> None:
        table.add(label, size(theirs), size(ours), ratio(ours / theirs))

    number = found.number("list", "credentials")
    each = found.number("range", "prefix_digits") + found.number("range", "mean_bytes")
    lookup = found.number("lookup_bytes", "query") + found.number("lookup_bytes", "response")
    once = found.number("sync", "bytes")
    add("one check, hint at hand", each, lookup)
    add("one check, hint included", each, once + lookup)
    add(f"{checked} checks, hint included", each * number, once + lookup * number)
    return table


def of_sizes(found: Result) -> Table:
    layout = found.part("layout")
    table = Table(
        f"{NAME}-sizes",
        "What it takes on disk",
        ["hashes", "the list", "matrix", "directory", "shards", "rows", "bytes of a record", "hint and table"],
    )
    table.rows.append(
        [
            count(found.number("keys")),
            size(found.number("list_bytes")),
            size(layout.number("matrix_bytes")),
            size(found.number("directory_bytes")),
            count(layout.number("shard_count")),
            count(layout.number("row_count")),
            count(layout.number("record_bytes")),
            size(found.number("sync", "bytes")),
        ]
    )
    return table


def of_times(found: Result) -> Table:
    """Every time, with its spread, and its yardsticks where it has some."""
    table = Table(
        f"{NAME}-times",
        "Every time, with its spread",
        ["", "median", "least", "most", "streaming reads, GB/s", "instruction, G/s"],
        about="Wall is the whole program, from its start to its end. The yardsticks are those of the same minute.",
    )
    timed = [
        ("build", ("reading", "surveying", "filters", "hint", "wall")),
        ("serve", ("seconds",)),
        ("sync", ("seconds",)),
        ("lookup", ("prepare", "server", "decode", "total", "wall")),
        ("list", ("seconds",)),
    ]
    labels = {
        "build": "build: {}",
        "serve": "serve, until it is ready",
        "sync": "the client's download",
        "lookup": "a look-up: {}",
        "list": "the whole list, wall",
    }
    for group, names in timed:
        part = found.part(group)
        beside = [NOTHING, NOTHING]
        if "read_bytes_per_second" in part.figures:
            rates = ("read_bytes_per_second", "peak_multiply_adds_per_second")
            beside = [shown(part.number(rate) / 1e9) for rate in rates]
        for name in names:
            table.add(
                labels[group].format(name),
                *(seconds(part.number(name, each)) for each in ("median", "least", "most")),
                *beside,
            )
    return table


def of_together(made: Comparison) -> Table:
    found = made.results.find(f"application.{TOGETHER_NAME}.json")
    if found is None:
        return Table(TOGETHER_NAME, "", [])
    number, hashes = found.figures["keys"], found.figures["hashes"]
    about = f"A list of {hashes:,} hashes, all in one call of the client program, some of them in the list."
    return together.table(TOGETHER_NAME, f"{number:,} passwords in one call", about, found)


def tables(made: Comparison) -> list[Table]:
    found = made.results.find(FILE)
    whole = [make(found) for make in (of_costs, of_ranges, of_sizes, of_times)] if found else []
    return [*whole, of_together(made)]


if __name__ == "__main__":
    import measure as report

    sys.exit(report.main(["--only", f"application.{NAME}.", "--again", *sys.argv[1:]]))
