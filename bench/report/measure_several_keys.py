"""Measures requests for several keys next to single look-ups in the same data."""

import dataclasses
import itertools
import pathlib
import shutil
from typing import Any

from measurements import Figures, Settings, folder_bytes, measured_builds, plan, spreads, write_input, yardstick
from programs import Failure, metric
from shapes import Shape

NOT_ASKED = 4  # the client program's status when keys found no place in a request
TINY_KEYS_PER_REQUEST = 2
REQUESTS = 'blindfuse_http_requests_total{route="queries",status="200"}'  # the server's counter

# Of a layout of requests for several keys: those that are the same on every machine.
SEVERAL = (
    "keys_per_request", "bucket_count", "row_count", "shard_count", "column_count", "query_bytes", "response_bytes",
    "bytes_per_key", "passes_per_key", "sync_bytes", "matrix_bytes", "packing_table_bytes", "options",
)
ONE = tuple(name for name in SEVERAL if name not in ("keys_per_request", "bucket_count"))


def measure_several_keys_plan(settings: Settings, shape: Shape, keys_per_request: int) -> Figures:
    """The layout that the planner chooses for requests of this many keys, and that for one key. Exact, so once is
    enough."""
    keys_per_request = TINY_KEYS_PER_REQUEST if settings.tiny else keys_per_request
    options = ("--keys-per-request", str(keys_per_request))
    found = plan(settings, shape, *shape.options("packed"), *options)
    layout = next(each for each in found["compared"] if each.get("keys_per_request", 1) == keys_per_request)
    several = found["several_keys"]
    return {
        "layout": {name: layout[name] for name in SEVERAL},
        "one_key": {name: several["one_key"][name] for name in ONE},
        "keys_that_pay": several["keys_that_pay"],
        "single_key_bytes": several["single_key_bytes"],
    }


def measure_several_keys(settings: Settings, shape: Shape, keys_per_request: int) -> Figures:
    """Databases of the same input for one key and for several keys in a request, one after the other, on all cores:
    each is built once, asked for one key and for as many as a request of the second has, and then by as many clients at
    once as a batch holds."""
    keys_per_request = TINY_KEYS_PER_REQUEST if settings.tiny else keys_per_request
    source = write_input(settings, shape)
    figures: Figures = {"threads": settings.cores, "keys_per_request": keys_per_request}
    try:
        for name, options in (("one_key", []), ("several_keys", ["--keys-per-request", str(keys_per_request)])):
            figures[name] = _one_of_several_keys(settings, shape, source, keys_per_request, options)
    finally:
        source.unlink(missing_ok=True)
    return figures


def _one_of_several_keys(
    settings: Settings, shape: Shape, source: pathlib.Path, key_count: int, options: list[str]
) -> Figures:
    database, cache = settings.work / "database", settings.work / "cache"
    threads, seconds = settings.cores, settings.load_seconds * (1 if settings.tiny else 20)
    try:
        once = dataclasses.replace(settings, runs=1)
        report, builds = measured_builds(once, source, database, threads, *shape.options("packed"), *options)
        with settings.programs.server(database, "--threads", str(threads)) as (url, metrics):
            sync = settings.programs.run("blindfuse-client", "sync", url, "--cache", cache, "--json").json()
            # A counter is there after the first request.
            ask_first = ["get", url, "key-0", "--cache", cache, "--json"]
            settings.programs.run("blindfuse-client", *ask_first, accepted=(0, NOT_ASKED))
            asked = {
                name: spreads(
                    [ask_together(settings, shape, url, metrics, cache, count, i) for i in range(settings.runs)]
                )
                for name, count in (("asked_one", 1), ("asked_all", key_count))
            }
            loads = [
                settings.programs.run(
                    "blindfuse-bench-load", url, "--metrics-url", f"unix:{metrics}", "--json", "--cache", cache,
                    "--warmup", str(seconds / 3), "--seconds", str(seconds / settings.runs), "--concurrency", "32",
                ).json()
                for _ in range(settings.runs)
            ]
            memory = metric(metrics, "process_resident_memory_bytes")
        if any(line["mismatches"] for line in loads):
            raise Failure(f"the load generator got wrong answers from {shape.name}")
        names = ("lookups_per_second", "requests_per_second", "mean_batch", "left_out")
        return {
            "layout": report["layout"],
            "directory_bytes": folder_bytes(database),
            "build": builds,
            "sync_bytes": sync["bytes_fetched"],
            **asked,
            "load": spreads([{name: line[name] or 0 for name in names} for line in loads]),
            "server_resident_bytes": memory,
        }
    finally:
        shutil.rmtree(database, ignore_errors=True)
        shutil.rmtree(cache, ignore_errors=True)


def sums(answers: list[dict[str, Any]]) -> Figures:
    """What the client program says of all keys of one call. Bytes are the sums of the keys' shares, which are rounded
    up."""
    # Keys of one request wait for it together, and say the same.
    waits = [wait for wait, _ in itertools.groupby(answer["seconds"]["server"] for answer in answers)]
    return {
        "left_out": sum(not answer["asked"] for answer in answers),
        "query_bytes": sum(answer["bytes"]["query"] for answer in answers),
        "response_bytes": sum(answer["bytes"]["response"] for answer in answers),
        "server": sum(waits),
    }


def ask_together(
    settings: Settings, shape: Shape, url: str, metrics: pathlib.Path, cache: pathlib.Path, key_count: int, run: int
) -> Figures:
    """One call of the client for this many keys, other ones in each run: what it took in all, and the requests and bytes
    that the server counted."""
    counters = {
        "requests": REQUESTS,
        "server_received_bytes": "blindfuse_http_received_bytes_total",
    }
    before = {name: metric(metrics, counter) for name, counter in counters.items()}
    machine_now = yardstick(settings, settings.cores)
    step = max(1, shape.keys // key_count)
    keys = [f"key-{(run + i * step) % shape.keys}" for i in range(key_count)]
    outcome = settings.programs.run(
        "blindfuse-client", "get", url, *keys, "--cache", cache, "--json", "--threads", str(settings.cores),
        accepted=(0, NOT_ASKED),
    )
    answers = outcome.json_lines()
    if any(answer["asked"] and not answer["found"] for answer in answers):
        raise Failure(f"a key was not found in {shape.name}")
    return machine_now | sums(answers) | {
        "keys": key_count,
        "prepare": sum(answer["seconds"]["prepare"] for answer in answers),
        "decode": sum(answer["seconds"]["decode"] for answer in answers),
        "wall": outcome.seconds,
        "client_peak_bytes": outcome.peak_bytes,
    } | {name: metric(metrics, counter) - before[name] for name, counter in counters.items()}
