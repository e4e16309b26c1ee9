"""A list of dangerous URLs that browsers ask privately, and that grows all day: FrodoPIR's appendix B, with real
updates.

Three ways to serve it are measured, with `blindfuse build` into the served directory, a server that takes each new
epoch, and a client that syncs as often as the paper's clients do and looks up what was just added:

- plain: one keyword database, key: the hash of a URL, value: one character that says what is wrong with it. Added keys
  spread over all shards, so that every update changes every hint.
- tiers: the same list in a base that is built once a week, and what was added since in a second, small database.
  Clients ask both, always.
- index: the paper's form. Hashes by number, places kept free so that updates change one shard; clients hold a list of
  prefixes that tells them which number to ask for.

The week of the tiers is run whole. Of the other two some updates are, and the tables multiply.

`bench/report.py --only application.safe-browsing --again` measures it."""

from __future__ import annotations

import dataclasses
import hashlib
import json
import pathlib
import shutil
import time
import urllib.request
from typing import Callable, Iterator

import common
from report import Bench, Failure, Figures, spreads

NAME = "safe-browsing"
EPOCH_SECONDS = 120  # within which a server has to take a new epoch
WATCH_SECONDS = 1  # the least that a server takes
HEX_KEYS = ("--key-encoding", "hex")
NEVER_LISTED = 1 << 40  # the first number of a URL that is on no list
TEST_URL = NEVER_LISTED - 1  # always on the list of additions: a database has at least one key


@dataclasses.dataclass(frozen=True)
class Model:
    """How the list grows, and what one client does, as FrodoPIR's appendix B assumes it."""

    urls: int = 3_000_000
    updates: int = 112  # of a week
    added: int = 268  # records in each
    places: int = 1 << 22  # in the index form
    shards: int = 16  # of the index form
    days: int = 7
    updates_a_day: int = 16
    syncs_a_day: int = 8
    look_ups_a_day: int = 16  # after a local list has said that a URL may be listed
    look_ups_without_list: int = 100  # a day; the paper has no such number, and this one is made up
    prefix_bytes: int = 4  # of the local list
    hash_bytes: int = 32

    @property
    def updates_a_sync(self) -> int:
        return self.updates_a_day // self.syncs_a_day

    @property
    def look_ups_a_sync(self) -> int:
        return self.look_ups_a_day // self.syncs_a_day

    @property
    def look_ups_a_week(self) -> int:
        return self.look_ups_a_day * self.days

    def added_numbers(self, update: int) -> range:
        return range(self.urls + update * self.added, self.urls + (update + 1) * self.added)

    def place(self, number: int) -> int:
        """Where the index form has the hash of a URL. The list fills all shards evenly; what is added fills one after
        the other, so that an update changes one hint. Place i is in shard i mod `shards`."""
        if number < self.urls:
            return number
        free_rows = (self.places - self.urls) // self.shards
        shard, row = divmod(number - self.urls, free_rows)
        return (self.places // self.shards - free_rows + row) * self.shards + shard

    def facts(self) -> Figures:
        syncs = self.updates // self.updates_a_sync
        return dataclasses.asdict(self) | {
            "updates_a_sync": self.updates_a_sync,
            "syncs": syncs,
            "look_ups": syncs * self.look_ups_a_sync,
        }


TINY = Model(urls=512, updates=4, added=8, places=1024)


def hash_of(number: int) -> str:
    """Of a made-up URL. A browser brings a URL into one form first, and hashes several parts of it."""
    return hashlib.sha256(f"https://site-{number}.example/".encode()).hexdigest()


def value_of(key: str) -> bytes:
    """What is wrong with a URL: one of three characters."""
    return (b"m", b"p", b"u")[int(key[:4], 16) % 3]


def lines(numbers: range) -> Iterator[str]:
    for number in numbers:
        key = hash_of(number)
        yield f"{key}\t{value_of(key).decode()}\n"


def hash_lines(model: Model) -> Iterator[str]:
    """The index form's places; those that are free hold zeros."""
    for number in range(model.urls):
        yield f"{hash_of(number)}\n"
    free = "0" * 2 * model.hash_bytes + "\n"
    for _ in range(model.places - model.urls):
        yield free


def write(path: pathlib.Path, content: Iterator[str]) -> pathlib.Path:
    with path.open("w", buffering=1 << 20) as file:
        file.writelines(content)
    return path


def append(path: pathlib.Path, numbers: range) -> None:
    with path.open("a") as file:
        file.writelines(lines(numbers))


@dataclasses.dataclass(frozen=True)
class Database(common.Database):
    """One that is updated while it is served."""

    def update(self, url: str, *more: str) -> tuple[Figures, Figures]:
        """Builds what changed, and waits until clients get it: the report, and a sample of what it cost."""
        outcome = self.bench.run("blindfuse", "build", *self.sources, "--output", self.folder, "--mode", "hint",
                                 *self.options, *more, "--threads", self.bench.cores, "--json")
        report: Figures = outcome.json()
        layout, rebuilt = report["layout"], report["shards_rebuilt"]
        deadline = time.monotonic() + EPOCH_SECONDS
        while url and json.load(urllib.request.urlopen(url + "/v1/database", timeout=60))["epoch"] != report["epoch"]:
            if time.monotonic() > deadline:
                raise Failure(f"the server did not take epoch {report['epoch']} of {self.name}")
            time.sleep(0.02)
        return report, {
            "seconds": report["seconds"]["total"], "peak_bytes": outcome.peak_bytes, "shards_rebuilt": rebuilt,
            "changed_hint_bytes": rebuilt * layout["hint_bytes"] / layout["shard_count"],
        }

    def look_up(self, url: str, key: str, expected: bytes | None) -> Figures:
        """The cost of a look-up with the right answer."""
        call = self.get(url, [key], "--prepare", "1")
        common.compare({key: expected}, call)
        cost = {f"{name}_seconds": value for name, value in call.answers[0]["seconds"].items()}
        return cost | {name: call.cost[name] for name in ("query_bytes", "response_bytes", "bytes")}

    def timed_look_ups(self, url: str, key: str, expected: bytes | None) -> Figures:
        """One after another, each next to its yardstick."""
        return spreads([self.bench.yardstick(self.bench.cores) | self.look_up(url, key, expected)
                        for _ in range(self.bench.runs)])


WATCHED = ("--watch-seconds", str(WATCH_SECONDS))


def some_updates(database: Database, change: Callable[[int], None],
                 asked: Callable[[int], dict[str, bytes | None]]) -> Figures:
    """A few updates, each made by `change`, and followed by a sync of a client and the look-ups of what is `asked`
    then, with the right answers."""
    bench, updates, syncs, expected = database.bench, [], [], {}
    report, first = database.update("")
    with database.served(*WATCHED) as (url, _):
        once = database.sync(url)
        for update in range(bench.runs):
            yardstick = bench.yardstick(bench.cores)
            change(update)
            report, sample = database.update(url)
            updates.append(sample | yardstick)
            syncs.append(database.sync(url))
            expected = asked(update)
            for key, value in expected.items():
                database.look_up(url, key, value)
        look_up = database.timed_look_ups(url, *list(expected.items())[-1])
    database.remove()
    return {"layout": report["layout"], "first": first, "update": spreads(updates), "once": once,
            "sync": spreads(syncs), "look_up": look_up}


def measure_plain(bench: Bench, model: Model, listed: pathlib.Path) -> Figures:
    """One keyword database."""
    additions = write(listed.with_name("additions.tsv"), lines(range(TEST_URL, TEST_URL + 1)))
    options = (*HEX_KEYS, "--lookups-per-client", str(model.look_ups_a_sync))

    def asked(update: int) -> dict[str, bytes | None]:
        added, absent = hash_of(model.added_numbers(update)[-1]), hash_of(NEVER_LISTED + update)
        return {added: value_of(added), absent: None}

    database = Database(bench, "plain", (listed, additions), options, HEX_KEYS)
    return some_updates(database, lambda update: append(additions, model.added_numbers(update)), asked)


@dataclasses.dataclass
class Tiers:
    """The base and the additions since it was built, each with its server, and one client of both."""

    model: Model
    base: Database
    recent: Database
    base_url: str
    recent_url: str
    syncs: list[Figures] = dataclasses.field(default_factory=list)
    look_ups: list[Figures] = dataclasses.field(default_factory=list)

    def sync(self) -> Figures:
        """Of both; nothing of the base is fetched unless it changed."""
        each = [self.base.sync(self.base_url), self.recent.sync(self.recent_url)]
        return {name: sum(part[name] for part in each) for name in each[0]}

    def look_up(self, number: int, is_listed: bool) -> None:
        """In both, whatever the first one says; the later tier counts where both have the URL."""
        key = hash_of(number)
        calls = [tier.get(url, [key], "--prepare", "1")
                 for tier, url in ((self.base, self.base_url), (self.recent, self.recent_url))]
        expected = value_of(key) if is_listed else None
        if (calls[1].values[0] or calls[0].values[0]) != expected:
            raise Failure(f"URL {number}: two tiers gave {[call.values for call in calls]} and not {expected!r}")
        self.look_ups.append({"bytes": sum(call.cost["bytes"] for call in calls),
                              "total_seconds": sum(call.answers[0]["seconds"]["total"] for call in calls)})

    def week(self) -> Figures:
        """Every update of it; the client syncs after some, and looks up what is new, old and absent."""
        updates, report = [], {}
        recorded = self.recent.sources[0]
        for update in range(self.model.updates):
            append(recorded, self.model.added_numbers(update))
            report, sample = self.recent.update(self.recent_url)
            updates.append(sample)
            if (update + 1) % self.model.updates_a_sync == 0:
                self.syncs.append(self.sync())
                for i in range(self.model.look_ups_a_sync):
                    turn = len(self.look_ups)
                    if i == 0:
                        self.look_up(self.model.added_numbers(update)[turn % self.model.added], True)
                    elif turn % 4 == 1:
                        self.look_up(turn * self.model.urls // self.model.facts()["look_ups"], True)
                    else:
                        self.look_up(NEVER_LISTED + turn, False)
        return {
            "layout": report["layout"],
            "update": spreads(updates),
            "sync": spreads(self.syncs),
            "look_up": spreads(self.look_ups),
            "build_seconds": sum(sample["seconds"] for sample in updates),
            "sync_bytes": sum(sample["bytes"] for sample in self.syncs),
            "sync_seconds": sum(sample["seconds"] for sample in self.syncs),
            "look_up_bytes": sum(sample["bytes"] for sample in self.look_ups),
            "look_up_seconds": sum(sample["total_seconds"] for sample in self.look_ups),
        }

    def roll_over(self) -> None:
        """The week's additions go into the base, and only then out of the other tier: no URL is missing meanwhile."""
        newest = self.model.added_numbers(self.model.updates - 1)[-1]
        append(self.base.sources[0], range(self.model.urls, newest + 1))
        self.base.update(self.base_url)
        self.look_up(newest, True)
        self.base.sync(self.base_url)
        write(self.recent.sources[0], lines(range(TEST_URL, TEST_URL + 1)))
        # All its hints change in any case, and otherwise it would keep the layout of the full week.
        self.recent.update(self.recent_url, "--fresh")
        self.sync()
        self.look_up(newest, True)
        self.look_up(NEVER_LISTED, False)


def measure_tiers(bench: Bench, model: Model, listed: pathlib.Path) -> Figures:
    """Two keyword databases, a whole week. The list itself is longer afterwards."""
    additions = write(listed.with_name("recent.tsv"), lines(range(TEST_URL, TEST_URL + 1)))
    base, recent = (
        Database(bench, name, (source,), (*HEX_KEYS, "--lookups-per-client", str(look_ups)), HEX_KEYS)
        for name, source, look_ups in (("base", listed, model.look_ups_a_week),
                                       ("recent", additions, model.look_ups_a_sync)))
    builds = []
    for _ in range(bench.runs):
        yardstick = bench.yardstick(bench.cores)
        report, sample = base.update("", "--fresh")
        builds.append(sample | yardstick)
    recent.update("")
    with base.served(*WATCHED) as (base_url, _), recent.served(*WATCHED) as (recent_url, _):
        once = {"base": base.sync(base_url), "recent": recent.sync(recent_url)}
        made = Tiers(model, base, recent, base_url, recent_url)
        week = made.week()
        look_up = {
            "base": base.timed_look_ups(base_url, hash_of(0), value_of(hash_of(0))),
            "recent": recent.timed_look_ups(recent_url, hash_of(model.urls), value_of(hash_of(model.urls))),
        }
        made.roll_over()
    base.remove()
    recent.remove()
    return {
        "base": {"layout": report["layout"], "build": spreads(builds), "once": once["base"]},
        "recent": {"once": once["recent"]},
        "week": week,
        "look_up": look_up,
    }


def put(path: pathlib.Path, model: Model, numbers: range) -> None:
    """Writes hashes into their places of the index form's file, whose lines have all the same length."""
    line_bytes = 2 * model.hash_bytes + 1
    with path.open("r+b") as file:
        for number in numbers:
            file.seek(model.place(number) * line_bytes)
            file.write(hash_of(number).encode())


def measure_index(bench: Bench, model: Model, folder: pathlib.Path) -> Figures:
    """The paper's form, of which an update changes one shard."""
    places = write(folder / "places.tsv", hash_lines(model))
    options = ("--index", "--value-encoding", "hex", "--shards", str(model.shards))

    def asked(update: int) -> dict[str, bytes | None]:
        numbers = (model.added_numbers(update)[-1], update)
        return {str(model.place(number)): bytes.fromhex(hash_of(number)) for number in numbers}

    database = Database(bench, "index", (places,), options)
    return some_updates(database, lambda update: put(places, model, model.added_numbers(update)), asked)


def plan_once_a_day(bench: Bench, model: Model) -> Figures:
    """The layout of one database for clients that sync once a day. Bytes are exact, so nothing is built."""
    layouts: list[Figures] = bench.run(
        "blindfuse", "plan", "--keys", model.urls, "--value-bytes", 1, "--fixed-values", "--mode", "hint",
        "--lookups-per-client", model.look_ups_a_day, "--json").json()["layouts"]
    return next(layout for layout in layouts if layout["chosen"])


def measure(bench: Bench, _: str) -> Figures:
    model = TINY if bench.tiny else Model()
    folder = bench.work / NAME
    folder.mkdir()
    listed = write(folder / "listed.tsv", lines(range(model.urls)))
    made = {"model": model.facts() | {"threads": bench.cores}, "once_a_day": plan_once_a_day(bench, model)}
    made["plain"] = measure_plain(bench, model, listed)
    made["tiers"] = measure_tiers(bench, model, listed)
    made["index"] = measure_index(bench, model, folder)
    shutil.rmtree(folder)
    return made


MEASURED = [f"application.{NAME}"]
