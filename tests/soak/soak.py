#!/usr/bin/env python3
"""Serves a database for a while, plain and over TLS, with API keys, to good clients and to hostile ones, while new epochs
come, certificates and keys are read again, the disk is full, and the file system of the database fails or hangs. Every
answer must be right, neither memory nor descriptors may grow, and hostile clients may not slow good ones down: time goes
by turns to good clients alone (calm) and to all (hostile), and the latencies are compared. Prints a line for each epoch
and each turn; exits with 1 when something is wrong."""

import argparse
import json
import os
import pathlib
import resource
import signal
import statistics
import subprocess
import sys
import tempfile
import time

from hostile_clients import HostileClients
from served_database import Database, Load, Server, make_certificate

GRACE_SECONDS = 2
SWITCH_SECONDS_MAX = 60
FAULT_SECONDS = 5  # for which the file system fails or hangs
# The 99th percentile of the good clients' latencies, with hostile clients over without.
SLOWDOWN_MAX = 2
MEMORY_GROWTH_MAX = 0.02
# In a short soak of a small database: what the allocator keeps more at one time than at another was seen to wander by
# 4 MB and come back. An epoch that is not freed is a matrix of 20 MB and more, each time.
MEMORY_NOISE_BYTES = 6 << 20
DESCRIPTORS_GROWTH_MAX = 5  # and one for every ten hostile clients, which come and go
STORE_BYTES = 1 << 30
EPOCHS_MAX = 3  # as the server has it by itself


class Failure(Exception):
    """What makes the soak fail at once."""


def await_condition(what, condition, seconds=SWITCH_SECONDS_MAX):
    given_up = time.monotonic() + seconds
    while not condition():
        if time.monotonic() > given_up:
            raise Failure(f"{seconds} s went by, and not yet: {what}")
        time.sleep(0.1)


class Store:
    """A disk that can be full, seen by the servers through a file system that can fail."""
    def __init__(self, folder, can_fail):
        self.path = folder / "store"
        self.shown = self.path
        self.path.mkdir()
        self.faulty_folder = None
        if not can_fail:
            return
        subprocess.run(["mount", "-t", "tmpfs", "-o", f"size={STORE_BYTES}", "tmpfs", self.path], check=True)
        self.shown = folder / "shown"
        self.shown.mkdir()
        # Debian's own Python, which finds Debian's modules whatever python3 is.
        self.faulty_folder = subprocess.Popen(
            ["setpriv", "--pdeathsig", "TERM", "/usr/bin/python3", pathlib.Path(__file__).with_name("faulty_folder.py"),
             self.path, self.shown], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        self.set("well")
        await_condition("the file system is mounted", self.shown.is_mount)

    def set(self, mood):
        print(mood, file=self.faulty_folder.stdin, flush=True)
        self.await_word(mood)

    def await_word(self, word):
        while True:
            said = self.faulty_folder.stdout.readline().strip()
            if said == word:
                return
            if not said:
                raise Failure("the file system ended")

    def fill(self):
        with (self.path / "ballast").open("wb") as ballast:
            free = os.statvfs(self.path)
            os.posix_fallocate(ballast.fileno(), 0, (free.f_bavail - 64) * free.f_bsize)

    def empty(self):
        (self.path / "ballast").unlink(missing_ok=True)

    def close(self):
        if self.faulty_folder is None:
            return
        self.faulty_folder.stdin.close()
        subprocess.run(["umount", "--lazy", self.shown], check=False)
        self.faulty_folder.wait()
        subprocess.run(["umount", "--lazy", self.path], check=False)


class Soak:
    def __init__(self, arguments, folder):
        self.arguments = arguments
        self.folder = folder
        self.problems = []
        self.samples = []  # one an epoch
        self.epochs = 0
        self.turns = []
        self.faults_met = 0
        self.store = Store(folder, arguments.faults)
        self.database = Database(arguments.bin, folder, self.store.path / "db", arguments.keys, arguments.value_bytes)
        self.servers = []

    def close(self):
        for server in self.servers:
            server.process.kill()
        self.store.close()

    def make_keys(self):
        for name in ("good", "hostile"):
            key = subprocess.run([self.arguments.bin / "blindfuse", "api-key", name, "--file", self.folder / "keys"],
                                 check=True, capture_output=True, text=True).stdout
            (self.folder / f"{name}.key").write_text(key)

    def run(self):
        make_certificate(self.folder)
        self.make_keys()
        self.database.build()
        options = ["--api-keys", self.folder / "keys", "--grace-seconds", GRACE_SECONDS, "--watch-seconds", 1,
                   "--queue-max", 4 * (self.arguments.good + self.arguments.hostile), "--log-level", "warning"]
        for tls in (False, True):
            self.servers.append(Server(self.arguments.bin, self.folder, self.store.shown / "db", tls, options))
        kinds = ["calm", "hostile"] * self.arguments.pairs or ["hostile"]
        for kind in kinds:
            self.take_turn(kind, self.arguments.seconds / len(kinds))
        for kind in set(kinds) - {sample["turn"] for sample in self.samples}:
            self.problems.append(f"no epoch came in time in the turns that are {kind}")
        self.stop()
        self.report()

    def stop(self):
        """Servers end well, though the file system hangs."""
        if self.arguments.faults:
            self.store.set("hang")
            for server in self.servers:
                server.signal(signal.SIGHUP)
            self.store.await_word("met")
            for server in self.servers:
                server.signal(signal.SIGTERM)
                # The kernel keeps a process whose call has reached this file system, even one that was killed.
                await_condition(f"{server.scheme}: the server ends without its files", lambda: (
                    server.process.poll() is not None or "does not answer" in server.log.read_text()))
            self.store.set("well")
        for server in self.servers:
            status = server.stop()
            if status != 0:
                self.problems.append(f"{server.scheme}: the server ended with {status}")

    def take_turn(self, kind, seconds):
        end = time.monotonic() + seconds
        hostile = []
        if kind == "hostile":
            key = (self.folder / "hostile.key").read_text().strip()
            hostile = [HostileClients(server, self.database, self.arguments.hostile // 2, key,
                                      self.arguments.visit_seconds) for server in self.servers]
        loads = [Load(self.arguments.bin, server, self.database, self.arguments.good // 2, max(1, round(seconds - 2)),
                      ["--epoch-changes", "--check-every", "4", "--cache", self.folder / f"cache-{server.scheme}",
                       "--api-key-file", self.folder / "good.key"]) for server in self.servers]
        took = self.arguments.every
        while time.monotonic() + took < end or kind not in [sample["turn"] for sample in self.samples]:
            began = time.monotonic()
            if not self.change_epoch(kind, loads):
                break
            took = time.monotonic() - began
        visits = [clients.stop() for clients in hostile]
        for server, load in zip(self.servers, loads):
            result = load.result()
            if not load.was_right():
                self.problems.append(f"{kind}, {server.scheme}: good clients: {json.dumps(result)}")
            turn = {"turn": kind, "scheme": server.scheme, "lookups": result.get("lookups"),
                    "checked": result.get("checked"), "wrong": result.get("mismatches"), "errors": result.get("errors"),
                    "seconds": result.get("seconds"), "paused_seconds": result.get("paused_seconds"),
                    "p50_ms": result.get("latency_ms", {}).get("p50"), "p99_ms": result.get("latency_ms", {}).get("p99")}
            self.turns.append(turn)
            print(json.dumps(turn), flush=True)
        for server, counted in zip(self.servers, visits):
            print(json.dumps({"turn": kind, "scheme": server.scheme, "visits": dict(sorted(counted.items()))}), flush=True)

    def change_epoch(self, kind, loads):
        """A new epoch, with one trouble after the other on its way, and what the servers hold after it. False when the
        good clients have ended meanwhile: slow readers can keep an epoch for longer than a turn has left. What the servers
        hold then is not compared with the rest."""
        until = time.monotonic() + self.arguments.every
        loaded = [server.metrics()['blindfuse_epoch_loads_total{result="success"}'] for server in self.servers]
        for server in self.servers:
            server.signal(signal.SIGHUP)
        troubles = [self.database.build, self.build_while_failing, self.build_while_hanging, self.build_on_a_full_disk]
        trouble = troubles[self.epochs % len(troubles)] if self.arguments.faults else self.database.build
        self.epochs += 1
        trouble()
        for server, before in zip(self.servers, loaded):
            self.await_switch(server, before + 1)
        seen = []
        # The last epoch's memory goes back to the system a moment after it, and bodies on their way take some.
        until = max(until, time.monotonic() + 1)
        while time.monotonic() < until:
            time.sleep(0.2)
            seen.append([server.metrics() for server in self.servers])
        sample = {"turn": kind, "trouble": trouble.__name__}
        if not all(load.is_running() for load in loads):
            print(json.dumps({**sample, "late": True}), flush=True)
            return False
        for index, server in enumerate(self.servers):
            rows = [row[index] for row in seen]
            sample[server.scheme] = {"bytes": min(row["process_resident_memory_bytes"] for row in rows),
                                     "fds": min(row["process_open_fds"] for row in rows)}
        self.samples.append(sample)
        print(json.dumps(sample), flush=True)
        return True

    def await_switch(self, server, loads):
        """Until the newest of this many epochs is alone in memory."""
        def is_switched():
            if server.process.poll() is not None:
                raise Failure(f"{server.scheme}: the server ended with {server.process.returncode}")
            now = server.metrics()
            if now["blindfuse_epochs"] > EPOCHS_MAX:
                raise Failure(f"{server.scheme}: {now['blindfuse_epochs']:.0f} epochs in memory")
            return now['blindfuse_epoch_loads_total{result="success"}'] >= loads and now["blindfuse_epochs"] == 1
        await_condition(f"{server.scheme}: {loads:.0f} epochs loaded, and one in memory", is_switched)

    def build_while_failing(self):
        self.store.set("fail")
        self.database.build()
        self.store.await_word("met")
        time.sleep(FAULT_SECONDS)
        self.store.set("well")

    def build_while_hanging(self):
        self.store.set("hang")
        self.database.build()
        self.store.await_word("met")
        for server in self.servers:
            server.signal(signal.SIGHUP)
        time.sleep(FAULT_SECONDS)
        self.store.set("well")

    def build_on_a_full_disk(self):
        self.store.fill()
        self.database.write_next()
        result = self.database.run_build()
        self.store.empty()
        if result.returncode != 1 or "space" not in result.stderr:
            self.problems.append(f"a build on a full disk ended with {result.returncode}: {result.stderr}")
        self.database.build()

    def report(self):
        for server in self.servers:
            for kind in sorted({sample["turn"] for sample in self.samples}):
                self.check_growth(kind, server.scheme, [sample[server.scheme] for sample in self.samples
                                                        if sample["turn"] == kind])
            lines = server.log.read_text().splitlines()
            print(f"{server.scheme}: {len(lines)} lines of warnings and errors; the last: {lines[-3:]}")
        if self.arguments.pairs > 0:
            for scheme in ("http", "https"):
                self.compare_latencies(scheme)

    def check_growth(self, kind, scheme, rows):
        # What the first epochs leave behind is the allocator's; growth is what goes on.
        third = max(1, len(rows) // 3)
        early, late = rows[third:2 * third] or rows, rows[-third:]
        # An epoch's memory for queries is address space until a query uses it. Turns of good clients use little of it, so
        # their least memory is compared. Turns alternate, so this memory holds what hostile clients made the server leak.
        # Hostile clients use all of it, before an epoch is measured or after; then the most memory is compared.
        name, extreme = ("most", max) if kind == "hostile" and self.arguments.pairs > 0 else ("least", min)
        before = extreme(row["bytes"] for row in early)
        grown = extreme(row["bytes"] for row in late) - before
        fds = statistics.median(row["fds"] for row in late) - statistics.median(row["fds"] for row in early)
        print(f"{kind}, {scheme}: {len(rows)} epochs, {name} memory {before / 1e6:.0f} MB {grown / before:+.2%}, "
              f"descriptors {fds:+.0f}")
        if grown > (MEMORY_GROWTH_MAX * before if self.arguments.pairs > 0 else MEMORY_NOISE_BYTES):
            self.problems.append(f"{kind}, {scheme}: memory grew by {grown} bytes")
        if fds > DESCRIPTORS_GROWTH_MAX + self.arguments.hostile / 10:
            self.problems.append(f"{kind}, {scheme}: {fds:.0f} descriptors more")

    def compare_latencies(self, scheme):
        def middle(kind):
            return statistics.median(turn["p99_ms"] for turn in self.turns
                                     if turn["turn"] == kind and turn["scheme"] == scheme)
        slowdown = middle("hostile") / middle("calm")
        print(f"{scheme}: good clients' p99 {middle('calm'):.1f} ms calm, {middle('hostile'):.1f} ms hostile, "
              f"{slowdown:.2f} times")
        if slowdown > SLOWDOWN_MAX:
            self.problems.append(f"{scheme}: hostile clients slow good ones down {slowdown:.2f} times")


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--bin", type=pathlib.Path, default=pathlib.Path("build/bin"), help="folder of the programs")
    parser.add_argument("--seconds", type=int, default=3600)
    parser.add_argument("--every", type=int, default=20, help="seconds from one epoch to the next, at least")
    parser.add_argument("--pairs", type=int, help="of turns, calm and hostile; 0: one hostile turn (default: as many as "
                        "have turns of at least 100 seconds, up to 6)")
    parser.add_argument("--good", type=int, default=200, help="good clients, half of them with TLS")
    parser.add_argument("--hostile", type=int, default=200, help="hostile clients, likewise")
    parser.add_argument("--visit-seconds", type=int, default=10, help="for which a hostile client stays at most")
    parser.add_argument("--keys", type=int, default=60_000)
    parser.add_argument("--value-bytes", type=int, default=1000)
    parser.add_argument("--no-faults", dest="faults", action="store_false",
                        help="of disks and file systems, which take root and FUSE")
    arguments = parser.parse_args()
    if arguments.pairs is None:
        arguments.pairs = min(6, max(1, arguments.seconds // 200))
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (min(hard, max(soft, 4096)), hard))
    with tempfile.TemporaryDirectory() as name:
        soak = Soak(arguments, pathlib.Path(name))
        try:
            soak.run()
        except Failure as failure:
            soak.problems.append(str(failure))
        finally:
            soak.close()
    for problem in soak.problems:
        print(f"FAILED: {problem}")
    sys.exit(1 if soak.problems else 0)


if __name__ == "__main__":
    main()
