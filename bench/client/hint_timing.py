#!/usr/bin/env python3
"""What a server can time: how long after an answer a client's next request comes, when the key was of the same shard as the
one before it, and when it was of another. Before each pair of look-ups the hints leave the system's page cache. Prints JSON.

The database is an index one, made of noise: entry i lies in shard i modulo their number. Requests pass through a proxy here,
which notes the time of each. "one_process": all look-ups are of one client program, which gets its next key when it has
printed the answer before it. "process_each": every look-up is a client program of its own, started when the one before it
has ended. "opening": the time in such a process from the server's first answer to the query."""

import argparse
import json
import os
import pathlib
import random
import select
import socket
import statistics
import subprocess
import tempfile
import threading
import time


class Proxy:
    """Passes bytes on between clients and a server. `gaps` has, for each request after the first, the seconds since the last
    byte of an answer."""

    def __init__(self, port):
        self.gaps = []
        self.answered = None
        self.port = port
        self.listener = socket.create_server(("127.0.0.1", 0))
        self.url = f"http://127.0.0.1:{self.listener.getsockname()[1]}"
        threading.Thread(target=self.accept, daemon=True).start()

    def accept(self):
        while True:
            client, _ = self.listener.accept()
            threading.Thread(target=self.carry, args=(client,), daemon=True).start()

    def carry(self, client):
        with client, socket.create_connection(("127.0.0.1", self.port)) as server:
            for end in (client, server):
                end.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            while True:
                for ready in select.select([client, server], [], [])[0]:
                    data = ready.recv(1 << 20)
                    if not data:
                        return
                    if ready is client:
                        if self.answered is not None:
                            self.gaps.append(time.perf_counter() - self.answered)
                            self.answered = None
                        server.sendall(data)
                    else:
                        client.sendall(data)
                        self.answered = time.perf_counter()


def evict(cache):
    """Drops the hints from the page cache."""
    for path in pathlib.Path(cache).rglob("*.hint"):
        descriptor = os.open(path, os.O_RDONLY)
        os.fdatasync(descriptor)
        os.posix_fadvise(descriptor, 0, 0, os.POSIX_FADV_DONTNEED)
        os.close(descriptor)


class OneProcess:
    """One client program for all look-ups."""

    def __init__(self, command):
        self.process = subprocess.Popen([*command, "--prepare", "1024", "--stream"], stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                                        text=True, bufsize=1)

    def look_up(self, key):
        print(key, file=self.process.stdin, flush=True)
        assert json.loads(self.process.stdout.readline())["found"]

    def close(self):
        self.process.stdin.close()
        assert self.process.wait() == 0


class ProcessEach:
    def __init__(self, command):
        self.command = command

    def look_up(self, key):
        assert json.loads(subprocess.run([*self.command, key], check=True, capture_output=True).stdout)["found"]

    def close(self):
        pass


def spread(seconds):
    return {"min_ms": round(min(seconds) * 1e3, 2), "median_ms": round(statistics.median(seconds) * 1e3, 2),
            "max_ms": round(max(seconds) * 1e3, 2)}


def measure(asker, proxy, cache, arguments):
    """Seconds from the answer of the second look-up of a pair to the next request, by whether both were of one shard; and
    from the first answer in the second look-up's process to its query."""
    times = {"same_shard": [], "other_shard": []}
    opening = {"same_shard": [], "other_shard": []}
    asker.look_up("0")
    for i in range(2 * arguments.rounds):
        which = "same_shard" if i % 2 else "other_shard"
        first = random.Random(i // 2).randrange(arguments.shards)
        second = first if i % 2 else (first + 1) % arguments.shards
        if not arguments.keep_cached:
            evict(cache)
        asker.look_up(str(first))
        asker.look_up(str(arguments.shards + second))
        opening[which].append(proxy.gaps[-1])
        asked = len(proxy.gaps)
        asker.look_up(str(first))
        times[which].append(proxy.gaps[asked])
    asker.close()
    return times, opening


def measure_all(client, proxy, cache, arguments):
    synced = subprocess.run([client, "sync", proxy.url, "--cache", cache, "--json"], check=True, capture_output=True)
    result = {"shards": arguments.shards, "hint_bytes": json.loads(synced.stdout)["hint_bytes"],
              "rounds": arguments.rounds, "cpus": os.cpu_count()}
    command = [client, "get", proxy.url, "--cache", cache, "--json"]
    if arguments.read_all:
        command += ["--hint-memory-bytes-max", "0"]
    for name, asker in (("one_process", OneProcess), ("process_each", ProcessEach)):
        times, opening = measure(asker(command), proxy, cache, arguments)
        result[name] = {which: spread(seconds) for which, seconds in times.items()}
        if asker is ProcessEach:
            result["opening"] = {which: spread(seconds) for which, seconds in opening.items()}
    return result


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--bin", type=pathlib.Path, default="build/bin", help="the folder of the programs")
    parser.add_argument("--client", type=pathlib.Path, help="another client than that folder's blindfuse-client")
    parser.add_argument("--shards", type=int, default=4)
    parser.add_argument("--value-bytes", type=int, default=18_000)
    parser.add_argument("--rounds", type=int, default=30)
    parser.add_argument("--keep-cached", action="store_true", help="leave hints in the page cache")
    parser.add_argument("--read-all", action="store_true", help="have the client keep no hints in memory")
    arguments = parser.parse_args()
    client = arguments.client or arguments.bin / "blindfuse-client"
    with tempfile.TemporaryDirectory() as folder:
        folder = pathlib.Path(folder)
        with open(folder / "values.tsv", "w", encoding="ascii") as values:
            for i in range(2 * arguments.shards):
                values.write(f"{i}\t{random.Random(i).randbytes(arguments.value_bytes // 2).hex()}\n")
        subprocess.run([arguments.bin / "blindfuse", "build", folder / "values.tsv", "--output", folder / "db", "--index",
                        "--mode", "hint", "--shards", str(arguments.shards)], check=True, stdout=subprocess.DEVNULL)
        with socket.create_server(("127.0.0.1", 0)) as free:
            port = free.getsockname()[1]
        with subprocess.Popen([arguments.bin / "blindfuse", "serve", folder / "db", "--listen", f"127.0.0.1:{port}"],
                              stderr=subprocess.PIPE, text=True) as server:
            threading.Thread(target=server.stderr.read, daemon=True).start()
            try:
                while server.poll() is None:
                    try:
                        socket.create_connection(("127.0.0.1", port)).close()
                        break
                    except ConnectionRefusedError:
                        time.sleep(0.05)
                result = measure_all(client, Proxy(port), folder / "cache", arguments)
            finally:
                server.terminate()
    print(json.dumps(result, indent=1))


if __name__ == "__main__":
    main()
