"""The databases and clients of the applications, and the measurement that two of them share: many keys in one call."""

from __future__ import annotations

import base64
import contextlib
import dataclasses
import http.client
import math
import pathlib
import shutil
import socket
from typing import Any, Iterator

from report import Bench, Failure, Figures, resident_bytes, spreads

KEYS_PER_REQUEST, KEYS_PER_REQUEST_TINY = 64, 2
PREPARED_MAX = 1024  # queries that the client makes in one pass
STATUSES = (0, 3, 4)  # of the client program: all found, some do not exist, some had no place in a request


@dataclasses.dataclass(frozen=True)
class Call:
    """One call of the client program: a value for each key, None where it does not exist, and what it took."""

    values: list[bytes | None]
    answers: list[Figures]
    cost: Figures


@dataclasses.dataclass(frozen=True)
class Database:
    """A database, and the cache of a client."""

    bench: Bench
    name: str
    sources: tuple[pathlib.Path, ...]
    options: tuple[str, ...]  # of `build`
    asking: tuple[str, ...] = ()  # of `blindfuse-client get`

    @property
    def folder(self) -> pathlib.Path:
        return self.bench.work / f"{self.name}.blindfuse"

    @property
    def cache(self) -> pathlib.Path:
        return self.bench.work / f"{self.name}.cache"

    def builds(self, runs: int = 0) -> tuple[Figures, Figures]:
        return self.bench.builds(list(self.sources), self.folder, *self.options, runs=runs)

    @contextlib.contextmanager
    def served(self, *options: str) -> Iterator[tuple[str, int]]:
        """Gives the server's URL and process."""
        socket_of_metrics = f"unix:{self.folder.with_suffix('.metrics')}"
        with self.bench.server(self.folder, "--threads", str(self.bench.cores), "--admin-listen", socket_of_metrics,
                               *options) as served:
            yield served

    def requests(self) -> float:
        """The server's count of requests with queries; there is none before the first."""
        name = 'blindfuse_http_requests_total{route="queries",status="200"}'
        connection = http.client.HTTPConnection("localhost")
        with socket.socket(socket.AF_UNIX) as connection.sock:
            connection.sock.connect(str(self.folder.with_suffix(".metrics")))
            connection.request("GET", "/metrics")
            lines = connection.getresponse().read().decode().splitlines()
        return sum(float(line.rpartition(" ")[2]) for line in lines if line.startswith(f"{name} "))

    def sync(self, url: str) -> Figures:
        return self.bench.sync(url, self.cache)

    def get(self, url: str, keys: list[str], *options: str) -> Call:
        """Keys of one request wait for it together and say the same time; a key's bytes are its share."""
        outcome = self.bench.run("blindfuse-client", "get", url, "--cache", self.cache, "--json", "--threads",
                                 self.bench.cores, *self.asking, *options, accepted=STATUSES,
                                 given="".join(f"{key}\n" for key in keys))
        answers = outcome.json_lines()
        if [answer["key"] for answer in answers] != keys:
            raise Failure(f"{len(answers)} answers to {len(keys)} keys of {self.name}")
        waits = [answer["seconds"]["server"] for answer in answers]
        query, response = (sum(answer["bytes"][what] for answer in answers) for what in ("query", "response"))
        return Call([value_of(answer) for answer in answers], answers, {
            "queries": len(keys), "query_bytes": query, "response_bytes": response, "bytes": query + response,
            "server": sum(wait for i, wait in enumerate(waits) if i == 0 or wait != waits[i - 1]),
            "wall": outcome.seconds, "client_peak_bytes": outcome.peak_bytes,
        })

    def remove(self) -> None:
        shutil.rmtree(self.folder, ignore_errors=True)
        shutil.rmtree(self.cache, ignore_errors=True)


def value_of(answer: dict[str, Any]) -> bytes | None:
    if not answer["found"]:
        return None
    value: str = answer["value"]
    return base64.b64decode(value) if answer["value_encoding"] == "base64" else value.encode()


def compare(expected: dict[str, bytes | None], call: Call) -> None:
    """Fails when a key that was asked for has another value than the truth."""
    for answer, value in zip(call.answers, call.values):
        key = answer["key"]
        if answer["asked"] and value != expected[key]:
            raise Failure(f"{key}: the answer is {value!r} and should be {expected[key]!r}")


def measure_together(bench: Bench, source: pathlib.Path, options: tuple[str, ...], asking: tuple[str, ...],
                     expected: dict[str, bytes | None]) -> Figures:
    """Databases in hint mode, in packed mode and for several keys in a request. Each is built once, and asked for all
    keys in one call as often as there are runs."""
    each, keys = KEYS_PER_REQUEST_TINY if bench.tiny else KEYS_PER_REQUEST, list(expected)
    figures: Figures = {"keys": len(keys)}
    for name, more in (("hint", ("--mode", "hint")), ("packed", ("--mode", "packed")),
                       ("several", ("--mode", "packed", "--keys-per-request", str(each)))):
        database = Database(bench, "together", (source,), (*options, *more), asking)
        try:
            report, builds = database.builds(runs=1)
            with database.served() as (url, process):
                synced, samples = database.sync(url), []
                prepared = ["--prepare", str(min(len(keys), PREPARED_MAX))] if name == "hint" else []
                for _ in range(bench.runs):
                    before = database.requests()
                    call = database.get(url, keys, *prepared)
                    compare(expected, call)
                    samples.append(call.cost | {"requests": database.requests() - before})
                memory = resident_bytes(process)
        finally:
            database.remove()
        requests = math.ceil(len(keys) / each)
        figures[name] = {
            "layout": report["layout"], "build": builds, "sync_bytes": synced["bytes"], "call": spreads(samples),
            "server_resident_bytes": memory,
            "learned": {"least_keys": (requests - 1) * each + 1 if name == "several" else len(keys),
                        "most_keys": requests * each if name == "several" else len(keys)},
        }
    return figures
