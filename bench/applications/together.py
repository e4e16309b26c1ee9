"""Many keys that are asked for in one call: with a query for each, and with requests for several keys."""

from __future__ import annotations

import dataclasses
import json
import math
import pathlib
import shutil
import subprocess
import time
from typing import Any, Callable

from cells import Cell, count, decimal_size, seconds
from comparison import Table
from measure_several_keys import NOT_ASKED, REQUESTS, sums
from measurements import Figures, Settings, measured_builds, spreads, yardstick
from programs import Failure, metric
from results import Result

KEYS_PER_REQUEST, KEYS_PER_REQUEST_TINY = 64, 2
PREPARED_MAX = 1024  # queries that the client makes in one pass
STATUSES = (0, 3, NOT_ASKED)  # of the client program: all found, some not there, some not asked for

Answers = list[dict[str, Any]]


def keys_per_request(settings: Settings) -> int:
    return KEYS_PER_REQUEST_TINY if settings.tiny else KEYS_PER_REQUEST


def variants(settings: Settings) -> dict[str, list[str]]:
    """The options of each database."""
    several = ["--mode", "packed", "--keys-per-request", str(keys_per_request(settings))]
    return {"hint": ["--mode", "hint"], "packed": ["--mode", "packed"], "several": several}


@dataclasses.dataclass(frozen=True)
class Call:
    """Asks a server for all keys in one call of the client program, which reads them from standard input."""

    settings: Settings
    url: str
    metrics: pathlib.Path
    cache: pathlib.Path
    options: list[str]

    def ask(self, keys: list[str]) -> tuple[Answers, float]:
        began = time.monotonic()
        done = subprocess.run(
            [self.settings.programs.path("blindfuse-client"), "get", self.url, "--cache", self.cache, "--json",
             *self.options],
            input="".join(f"{key}\n" for key in keys), capture_output=True, text=True, check=False,
        )
        wall = time.monotonic() - began
        answers = [json.loads(line) for line in done.stdout.splitlines()]
        if done.returncode not in STATUSES or [answer["key"] for answer in answers] != keys:
            raise Failure(f"{len(keys)} keys: status {done.returncode}\n{done.stderr[-2000:]}")
        return answers, wall

    def measured(self, keys: list[str], check: Callable[[Answers], None]) -> Figures:
        before = metric(self.metrics, REQUESTS)
        answers, wall = self.ask(keys)
        requests = metric(self.metrics, REQUESTS) - before
        check([answer for answer in answers if answer["asked"]])
        return sums(answers) | {"requests": requests, "wall": wall}


def measure(
    settings: Settings,
    source: pathlib.Path,
    value_encoding: str,
    build_options: list[str],
    ask_options: list[str],
    keys: list[str],
    check: Callable[[Answers], None],
) -> Figures:
    """Each database is built once, and asked for all keys as often as there are runs; `check` fails on wrong answers.
    `source` stays."""
    database, cache = settings.work / "together", settings.work / "together-cache"
    once = dataclasses.replace(settings, runs=1)
    figures: Figures = {"keys": len(keys)}
    for name, options in variants(settings).items():
        try:
            report, builds = measured_builds(
                once, source, database, settings.cores, *build_options, *options, value_encoding=value_encoding
            )
            with settings.programs.server(database, "--threads", str(settings.cores)) as (url, metrics):
                sync = settings.programs.run("blindfuse-client", "sync", url, "--cache", cache, "--json").json()
                # In hint mode all queries in one pass, which costs little more than one query.
                prepared = ["--prepare", str(min(len(keys), PREPARED_MAX))] if name == "hint" else []
                threads = ["--threads", str(settings.cores)]
                call = Call(settings, url, metrics, cache, [*ask_options, *prepared, *threads])
                call.ask(keys[:1])  # the counter of requests is there after the first
                samples = [
                    call.measured(keys, check) | yardstick(settings, settings.cores) for _ in range(settings.runs)
                ]
                memory = metric(metrics, "process_resident_memory_bytes")
        finally:
            shutil.rmtree(database, ignore_errors=True)
            shutil.rmtree(cache, ignore_errors=True)
        figures[name] = {
            "layout": report["layout"], "build": builds, "sync_bytes": sync["bytes_fetched"],
            "call": spreads(samples), "server_resident_bytes": memory, "learned": learned(settings, name, len(keys)),
        }
    return figures


def learned(settings: Settings, name: str, keys: int) -> Figures:
    """For how many keys a call may have been, as the server sees it."""
    if name != "several":
        return {"least_keys": keys, "most_keys": keys}
    each = keys_per_request(settings)
    requests = math.ceil(keys / each)
    return {"least_keys": (requests - 1) * each + 1, "most_keys": requests * each}


def table(block: str, title: str, about: str, found: Result) -> Table:
    """Of what measure() gives."""
    made = Table(
        block, title,
        ["", "matrix", "server's memory", "once an epoch", "requests", "sent", "received", "the server's time",
         "the whole call", "keys left out", "the server learns"],
        about=about + " Each database was built once. The server's time is what the client waits for it, all requests "
        "together; the whole call is the client program's, from its start to its end. Every answer was compared with "
        "the truth.",
    )
    labels = {"hint": "hint mode, a query for each key", "packed": "packed mode, a query for each key"}
    for name in ("hint", "packed", "several"):
        part = found.part(name)
        least, most = (part.number("learned", each) for each in ("least_keys", "most_keys"))
        same = least.value == most.value
        made.add(
            labels.get(name) or f"requests for {part.figures['layout']['keys_per_request']} keys",
            decimal_size(part.number("layout", "matrix_bytes")),
            decimal_size(part.number("server_resident_bytes")),
            decimal_size(part.number("sync_bytes")),
            count(part.number("call", "requests")),
            decimal_size(part.number("call", "query_bytes")),
            decimal_size(part.number("call", "response_bytes")),
            seconds(part.number("call", "server")),
            seconds(part.number("call", "wall")),
            count(part.number("call", "left_out")),
            Cell(f"that {count(least).text}{'' if same else f' to {count(most).text}'} keys were asked for"),
        )
    return made
