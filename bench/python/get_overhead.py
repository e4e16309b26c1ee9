#!/usr/bin/env python3
"""What Python adds to a get: the C++ client's and Python's, in turns, of the same keys from the same server. Prints JSON;
exits with 1 when Python's median is 5 % above C++'s or more. Needs the Python package installed, and BLINDFUSE_PROGRAM or
`blindfuse` on the PATH."""

import argparse
import json
import os
import pathlib
import random
import statistics
import subprocess
import sys
import tempfile
import time

import blindfuse

RATIO_MAX = 1.05


def read_items(path):
    with open(path, encoding="utf-8", newline="\n") as lines:
        for line in lines:
            key, _, value = line.rstrip("\n").partition("\t")
            yield key, value


def quartiles(seconds):
    low, middle, high = statistics.quantiles(seconds, n=4)
    return {"median_ms": round(middle * 1e3, 4), "quartiles_ms": [round(low * 1e3, 4), round(high * 1e3, 4)]}


def measure(server, keys, cache, arguments):
    """Pairs of seconds, C++'s and Python's, for each key; who goes first changes."""
    with server.connect(cache=cache, threads=arguments.client_threads, progress=False) as words, subprocess.Popen(
            [arguments.cpp, server.url, cache, str(arguments.client_threads)], stdin=subprocess.PIPE,
            stdout=subprocess.PIPE, text=True, bufsize=1) as cpp:
        words.sync()

        def in_cpp(key):
            print(key, file=cpp.stdin, flush=True)
            seconds, found = cpp.stdout.readline().split()
            assert found == "1"
            return float(seconds)

        def in_python(key):
            start = time.perf_counter()
            value = words.get(key)
            seconds = time.perf_counter() - start
            assert value is not None
            return seconds

        pairs = []
        for i, key in enumerate(keys):
            order = (in_cpp, in_python) if i % 2 else (in_python, in_cpp)
            taken = {ask: ask(key) for ask in order}
            pairs.append((taken[in_cpp], taken[in_python]))
        cpp.stdin.close()
    return pairs[len(pairs) // 10:]  # the first are for warming up


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--cpp", type=pathlib.Path, default="build/bin/blindfuse-bench-get", help="the C++ side")
    parser.add_argument("--tsv", type=pathlib.Path, help="key, tab, value (default: 148,000 made up pairs)")
    parser.add_argument("--gets", type=int, default=1000)
    parser.add_argument("--client-threads", type=int, default=1)
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        items = dict(read_items(arguments.tsv)) if arguments.tsv else {
            f"word {i}": random.Random(i).randbytes(128).hex() for i in range(148_000)}
        database = blindfuse.Database.build(items, pathlib.Path(folder) / "db", mode="hint")
        keys = random.Random(1).choices(list(items), k=arguments.gets)
        with database.serve() as server:
            pairs = measure(server, keys, pathlib.Path(folder) / "cache", arguments)
    cpp, python = ([pair[side] for pair in pairs] for side in (0, 1))
    ratio = statistics.median(python) / statistics.median(cpp)
    print(json.dumps({
        "keys": database.report.key_count, "query_bytes": database.report.query_bytes, "gets": len(pairs),
        "client_threads": arguments.client_threads, "cpus": os.cpu_count(), "cpp": quartiles(cpp),
        "python": quartiles(python), "ratio": round(ratio, 4),
        "python_minus_cpp_us": round((statistics.median(python) - statistics.median(cpp)) * 1e6, 1)}, indent=1))
    sys.exit(ratio >= RATIO_MAX)


if __name__ == "__main__":
    main()
