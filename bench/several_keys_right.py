#!/usr/bin/env python3
"""Asks a server whose requests are for several keys for random ones, some of them in the database and some not, and
compares every answer with the file that the database was built from.

Each call of the client is for --keys-per-call different keys. Where a request has as many, a key that finds no place in
it is left out, and counted. Prints how many answers were right and wrong, how many keys
were left out, and in how many calls. The exit status is 1 if any answer was wrong or a call failed.

  bench/several_keys_right.py http://127.0.0.1:8080 pairs.tsv --calls 10000 --value-encoding hex
"""

from __future__ import annotations

import argparse
import base64
import collections
import concurrent.futures
import dataclasses
import json
import os
import pathlib
import random
import subprocess
import sys
import tempfile
import time

ROOT = pathlib.Path(__file__).resolve().parents[1]
NOT_THERE, NOT_ASKED = 3, 4  # statuses of the client program
ABSENT_DIGITS = 40


class Pairs:
    """Random lines of a file of pairs, which may be larger than memory. A line comes as often as the one before it is
    long."""

    def __init__(self, path: pathlib.Path, value_encoding: str) -> None:
        self.path, self.value_encoding = path, value_encoding
        self.bytes = path.stat().st_size
        if self.bytes == 0:
            raise SystemExit(f"{path} is empty")

    def sample(self, chance: random.Random, wanted: int) -> dict[str, bytes]:
        found: dict[str, bytes] = {}
        with self.path.open("rb") as file:
            for _ in range(100 * wanted):
                if len(found) == wanted:
                    return found
                file.seek(chance.randrange(self.bytes))
                file.readline()  # the rest of one
                line = file.readline()
                if not line:
                    file.seek(0)
                    line = file.readline()
                key, _, value = line.rstrip(b"\r\n").partition(b"\t")
                found[key.decode()] = bytes.fromhex(value.decode()) if self.value_encoding == "hex" else value
        raise SystemExit(f"{self.path} has too few pairs for calls of {wanted} keys that are in it")


@dataclasses.dataclass(frozen=True)
class Asker:
    client: pathlib.Path
    url: str
    cache: pathlib.Path
    pairs: Pairs
    keys_per_call: int
    present_share: float
    seed: int

    def call(self, number: int) -> collections.Counter[str]:
        """One call of the client, with keys that the seed and its number choose."""
        chance = random.Random(f"{self.seed}/{number}")
        present = sum(chance.random() < self.present_share for _ in range(self.keys_per_call))
        truth: dict[str, bytes | None] = dict(self.pairs.sample(chance, present))
        while len(truth) < self.keys_per_call:
            # No one's database has a random key of this length.
            truth[f"absent-{chance.getrandbits(4 * ABSENT_DIGITS):0{ABSENT_DIGITS}x}"] = None
        keys = list(truth)
        chance.shuffle(keys)
        done = subprocess.run(
            [self.client, "get", self.url, "--cache", self.cache, "--json"],
            input="".join(f"{key}\n" for key in keys), capture_output=True, text=True, check=False,
        )
        answers = [json.loads(line) for line in done.stdout.splitlines()]
        if done.returncode not in (0, NOT_THERE, NOT_ASKED) or [each["key"] for each in answers] != keys:
            print(f"call {number}: status {done.returncode}: {done.stderr.strip()[-500:]}", file=sys.stderr)
            return collections.Counter(failed_calls=1)
        counted = collections.Counter(calls=1)
        for answer in answers:
            verdict = verdict_of(answer, truth[answer["key"]])
            counted[verdict] += 1
            if verdict == "wrong":
                print(f"call {number}: wrong answer for {answer['key']}", file=sys.stderr)
        counted["calls_that_left_out"] = int(counted["left_out"] > 0)
        return counted


def verdict_of(answer: dict[str, object], expected: bytes | None) -> str:
    """What became of a key: right_there, right_absent, wrong or left_out."""
    if not answer["asked"]:
        return "left_out"
    value = None
    if answer["found"]:
        text = str(answer["value"])
        value = base64.b64decode(text) if answer["value_encoding"] == "base64" else text.encode()
    if value != expected:
        return "wrong"
    return "right_absent" if expected is None else "right_there"


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("url", metavar="URL")
    parser.add_argument("pairs", type=pathlib.Path, metavar="TSV", help="what the database was built from")
    parser.add_argument("--calls", type=int, default=1000, metavar="N")
    parser.add_argument("--keys-per-call", type=int, default=64, metavar="N")
    parser.add_argument("--present-share", type=float, default=0.5, metavar="X", help="of keys that are there")
    parser.add_argument("--value-encoding", choices=("utf8", "hex"), default="utf8", help="of the file's values")
    parser.add_argument("--clients", type=int, default=2 * (os.cpu_count() or 1), metavar="N", help="calls at once")
    parser.add_argument("--seed", type=int, default=1)
    client = ROOT / "build" / "bin" / "blindfuse-client"
    parser.add_argument("--client", type=pathlib.Path, default=client, metavar="FILE")
    options = parser.parse_args()
    total: collections.Counter[str] = collections.Counter()
    began = time.monotonic()
    with tempfile.TemporaryDirectory(prefix="blindfuse-right-") as folder:
        cache = pathlib.Path(folder)
        # Once, so that the calls do not each do so.
        subprocess.run([options.client, "sync", options.url, "--cache", cache], check=True, capture_output=True)
        asker = Asker(
            options.client, options.url, cache, Pairs(options.pairs, options.value_encoding), options.keys_per_call,
            options.present_share, options.seed,
        )
        with concurrent.futures.ThreadPoolExecutor(options.clients) as pool:
            for done, counted in enumerate(pool.map(asker.call, range(options.calls)), 1):
                total.update(counted)
                if done % 1000 == 0:
                    print(f"{done} calls, {dict(total)}", file=sys.stderr)
    names = ("calls", "failed_calls", "right_there", "right_absent", "wrong", "left_out", "calls_that_left_out")
    asked = {"keys_per_call": options.keys_per_call, "seed": options.seed, "seconds": time.monotonic() - began}
    print(json.dumps(asked | {name: total[name] for name in names}))
    return 1 if total["wrong"] or total["failed_calls"] else 0


if __name__ == "__main__":
    sys.exit(main())
