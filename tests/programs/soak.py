#!/usr/bin/env python3
"""Serves a database for a while under mixed load, while new epochs come and go: every answer must be right, and neither
memory nor descriptors may grow. Prints a line for each epoch; exits with 1 when something is wrong."""

import argparse
import http.client
import json
import pathlib
import random
import re
import socket
import statistics
import subprocess
import sys
import tempfile
import time

STABLE_KEYS = 20_000  # whose values never change, and which are asked for
CHANGING_KEYS = 20_000
GRACE_SECONDS = 2
# What the allocator keeps more at one time than at another: the least of a few epochs was seen to wander by 4 MB and come
# back. An epoch that is not freed is a matrix of 20 MB and more, each time.
NOISE_BYTES = 6 << 20
SAMPLES_MIN = 3
SWITCH_SECONDS_MAX = 60


def write_tsv(path, version):
    lines = [f"stable {i}\t{'s' * 300}{i}\n" for i in range(STABLE_KEYS)]
    chosen = random.Random(version)
    lines += [f"changing {i}\tversion {version} {chosen.random()}\n" for i in range(CHANGING_KEYS)]
    path.write_text("".join(lines))


def wait_for(path, server):
    for _ in range(600):
        if path.exists():
            return path.read_text().strip()
        if server.poll() is not None:
            break
        time.sleep(0.1)
    sys.exit("the server did not start")


def least(samples, name):
    return min(sample[name] for sample in samples)


class UnixConnection(http.client.HTTPConnection):
    """HTTP over a UNIX socket."""
    def __init__(self, path):
        super().__init__("localhost")
        self.path = path

    def connect(self):
        self.sock = socket.socket(socket.AF_UNIX)
        self.sock.connect(str(self.path))


class Soak:
    def __init__(self, arguments, folder):
        self.arguments = arguments
        self.folder = folder
        self.admin = folder / "admin"
        self.version = 0

    def build(self):
        self.version += 1
        write_tsv(self.folder / "map.tsv", self.version)
        subprocess.run([self.arguments.bin / "blindfuse", "build", self.folder / "map.tsv", "--output",
                        self.folder / "db", "--shards", "8", "--threads", "1"], check=True,
                       stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)

    def metrics(self):
        connection = UnixConnection(self.admin)
        connection.request("GET", "/metrics")
        text = connection.getresponse().read().decode()
        connection.close()
        return {name: float(value) for name, value in re.findall(r"^([^#\s]\S*) (\S+)$", text, re.MULTILINE)}

    def load(self, *options):
        expect = self.folder / "stable.tsv"
        return subprocess.Popen([self.arguments.bin / "blindfuse-bench-load", self.url, "--json", "--expect", expect,
                                 "--epoch-changes", "--check-every", "4", "--cache", self.folder / f"cache{options}",
                                 "--seconds", str(self.arguments.seconds), "--warmup", "1", *options],
                                stdout=subprocess.PIPE)

    def run(self):
        self.build()
        (self.folder / "stable.tsv").write_text(
            "".join((self.folder / "map.tsv").read_text().splitlines(keepends=True)[:STABLE_KEYS]))
        server = subprocess.Popen(["setpriv", "--pdeathsig", "KILL", self.arguments.bin / "blindfuse", "serve",
                                   self.folder / "db", "--listen", "127.0.0.1:0", "--ready-file", self.folder / "url",
                                   "--admin-listen", f"unix:{self.admin}",
                                   "--grace-seconds", str(GRACE_SECONDS), "--watch-seconds", "1", "--log-level",
                                   "warning"])
        try:
            self.url = wait_for(self.folder / "url", server)
            samples, results, failed = [], [], False
            while not failed and len(samples) < SAMPLES_MIN:  # on a slow machine once more
                loads = [self.load("--concurrency", "4", "--idle-connections", "50", "--slow-senders", "20"),
                         self.load("--concurrency", "2", "--format", "json", "--queries-per-request", "3")]
                self.watch(samples)
                results += [json.loads(load.communicate()[0] or "{}") for load in loads]
                failed = any(load.returncode != 0 for load in loads)
        finally:
            server.terminate()
            status = server.wait(timeout=120)
        self.report(samples, results, failed or status != 0)

    def await_switch(self, loads):
        """The metrics with the newest of so many epochs alone in memory."""
        given_up = time.monotonic() + SWITCH_SECONDS_MAX
        while True:
            now = self.metrics()
            loaded = now['blindfuse_epoch_loads_total{result="success"}']
            if loaded >= loads and now["blindfuse_epochs"] == 1:
                return now
            if time.monotonic() > given_up:
                sys.exit(f"FAILED: {SWITCH_SECONDS_MAX} s after epoch {loads} was built, {loaded:.0f} were loaded and "
                         f"{now['blindfuse_epochs']:.0f} are in memory")
            time.sleep(0.1)

    def watch(self, samples):
        """Appends memory and descriptors with one epoch in memory, after each switch: as many as there is time for."""
        began = time.monotonic()
        end = began + self.arguments.seconds
        took = self.arguments.every
        while time.monotonic() + took < end:
            step = time.monotonic()
            self.build()
            seen = [self.await_switch(len(samples) + 1)]
            # The last epoch's memory goes back to the system a moment after it, and bodies on their way take some.
            until = max(time.monotonic() + 1, step + self.arguments.every)
            while time.monotonic() < until:
                time.sleep(0.2)
                seen.append(self.metrics())
            sample = {"bytes": least(seen, "process_resident_memory_bytes"), "fds": seen[-1]["process_open_fds"],
                      "answered": seen[-1]['blindfuse_queries_total{outcome="answered"}']}
            print(json.dumps(sample), flush=True)
            samples.append(sample)
            took = time.monotonic() - step

    def report(self, samples, results, failed):
        wrong = sum(result.get("mismatches", 1) for result in results)
        checked = sum(result.get("checked", 0) for result in results)
        # What the first epochs leave behind is the allocator's; growth is what goes on.
        third = max(1, len(samples) // 3)
        early, late = samples[third:2 * third] or samples, samples[-third:]
        # The least of each: what bodies on their way take besides comes and goes.
        growth = least(late, "bytes") / least(early, "bytes") - 1
        # The usual number: connections that the load closes and opens anew come and go.
        fds = statistics.median(row["fds"] for row in late) - statistics.median(row["fds"] for row in early)
        print(f"{len(samples)} epochs, {samples[-1]['answered']:.0f} look-ups, {checked} checked, {wrong} wrong, "
              f"memory {growth:+.2%}, descriptors {fds:+.0f}")
        bytes_before = least(early, "bytes")
        grown = growth * bytes_before > max(0.01 * bytes_before, NOISE_BYTES)
        if failed or wrong or not checked or grown or fds > 5:
            sys.exit("FAILED")


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--bin", type=pathlib.Path, default=pathlib.Path("build/bin"), help="folder of the programs")
    parser.add_argument("--seconds", type=int, default=3600)
    parser.add_argument("--every", type=int, default=60, help="seconds from one epoch to the next, at least")
    with tempfile.TemporaryDirectory() as folder:
        Soak(parser.parse_args(), pathlib.Path(folder)).run()


if __name__ == "__main__":
    main()
