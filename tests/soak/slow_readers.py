#!/usr/bin/env python3
"""A thousand clients that read a byte a second, for each kind of response, plain and over TLS, while eight good clients
look keys up: the server's memory stays within what its options allow, and the good clients get right answers. Prints a line for
each kind; exits with 1 when something is wrong."""

import argparse
import json
import os
import pathlib
import resource
import socket
import ssl
import subprocess
import sys
import tempfile
import time

from served_database import Database, Load, Server, make_certificate

READERS = 1000
RESPONSE_BYTES_MAX = 32 << 20
# Connections, their TLS, what the allocator keeps, and the queue.
OTHER_BYTES = {"http": 40 << 20, "https": 64 << 20}
GOOD_CLIENTS = 8
KEYS = 3000
VALUE_BYTES = 4000
QUERIES = 4  # in one request
LOAD_SECONDS = 15  # longer than a client may do nothing
# Of these, the kernel takes all that there is, so that no reader is slow.
SMALL = {"the table", "the manifest", "the description"}


class Readers:
    """Clients that send a request, and read a byte a second of the response."""
    def __init__(self, server, request, context):
        self.sockets = []
        for _ in range(READERS):
            client = socket.socket()
            # As on a network that is not a loopback: the kernel takes little off the server's hands.
            client.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
            client.setsockopt(socket.IPPROTO_TCP, socket.TCP_MAXSEG, 536)
            client.settimeout(60)
            client.connect(("127.0.0.1", server.port))
            if server.scheme == "https":
                client = context.wrap_socket(client, server_hostname="localhost")
            client.sendall(request)
            client.settimeout(0)
            self.sockets.append(client)

    def read(self):
        """A byte each, below TLS."""
        left = []
        for client in self.sockets:
            try:
                byte = os.read(client.fileno(), 1)
            except BlockingIOError:
                byte = b"?"
            except OSError:
                byte = b""
            if byte:
                left.append(client)
            else:
                client.close()
        self.sockets = left

    def close(self):
        for client in self.sockets:
            client.close()


def requests_of(database):
    """One request for each kind of response."""
    path = f"/v1/epochs/{database.epoch()}"
    query_bytes = database.query_bytes()

    def get(target):
        return f"GET {target} HTTP/1.1\r\nHost: localhost\r\n\r\n".encode()

    def post(content_type, body):
        return (f"POST {path}/queries HTTP/1.1\r\nHost: localhost\r\nContent-Type: {content_type}\r\n"
                f"Content-Length: {len(body)}\r\n\r\n").encode() + body

    text = "A" * ((query_bytes + 2) // 3 * 4)
    if query_bytes % 3:
        text = text[:-(3 - query_bytes % 3)] + "=" * (3 - query_bytes % 3)
    return {
        "queries": post("application/octet-stream", bytes(QUERIES * query_bytes)),
        "queries in JSON": post("application/json", json.dumps({"queries": [text] * QUERIES}).encode()),
        "hints": get(f"{path}/hint"),
        "the table": get(f"{path}/shards"),
        "the manifest": get("/v1/database"),
        "the description": get("/openapi.json"),
    }


def measure(arguments, database, server, kind, request):
    """What is wrong while this many clients take their time with a response of this kind."""
    context = ssl.create_default_context(cafile=database.folder / "cert.pem")
    before = server.metrics()["process_resident_memory_bytes"]
    readers = Readers(server, request, context)
    good = Load(arguments.bin, server, database, GOOD_CLIENTS, LOAD_SECONDS,
                ["--check-every", 1, "--cache", database.folder / "cache"])
    grown, reserved, cut, next_byte = 0, 0, {}, time.monotonic()
    while good.is_running():
        now = server.metrics()
        grown = max(grown, now["process_resident_memory_bytes"] - before)
        reserved = max(reserved, now['blindfuse_http_memory_bytes{of="responses"}'])
        cut = {why: int(now[f'blindfuse_http_connections_cut_total{{why="{why}"}}'])
               for why in ("slow_reader", "response_memory")}
        if time.monotonic() >= next_byte:
            next_byte += 1
            readers.read()
        time.sleep(0.1)
    left = len(readers.sockets)
    readers.close()
    result = good.result()
    line = {"kind": kind, "scheme": server.scheme, "memory_grown_mb": round(grown / 1e6), "reserved_mb": round(reserved / 1e6),
            "readers_left": left, "cut": cut, "good_lookups": result.get("lookups"), "checked": result.get("checked"),
            "mismatches": result.get("mismatches"), "errors": result.get("errors"),
            "p99_ms": result.get("latency_ms", {}).get("p99")}
    print(json.dumps(line), flush=True)
    wrong = []
    if not good.was_right():
        wrong.append(f"good clients: {result}")
    if kind not in SMALL and not sum(cut.values()):
        wrong.append("no reader was cut off")
    if kind.startswith("queries") and reserved < RESPONSE_BYTES_MAX / 2:
        wrong.append(f"responses held {reserved:.0f} bytes alone, too few to see what happens when they are too many")
    if reserved > RESPONSE_BYTES_MAX:
        wrong.append(f"responses held {reserved:.0f} bytes")
    if grown > RESPONSE_BYTES_MAX + OTHER_BYTES[server.scheme]:
        wrong.append(f"memory grew by {grown:.0f} bytes")
    return [f"{kind} ({server.scheme}): {text}" for text in wrong]


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--bin", type=pathlib.Path, default=pathlib.Path("build/bin"), help="folder of the programs")
    arguments = parser.parse_args()
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (min(hard, max(soft, 4 * READERS)), hard))
    problems = []
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        make_certificate(folder)
        database = Database(arguments.bin, folder, folder / "db", KEYS, VALUE_BYTES)
        database.build()
        options = ["--connections-max", 2 * READERS, "--queue-max", 2 * READERS * QUERIES, "--response-bytes-max",
                   RESPONSE_BYTES_MAX, "--log-level", "error"]
        for tls in (False, True):
            for kind, request in requests_of(database).items():
                server = Server(arguments.bin, folder, database.directory, tls, options)
                try:
                    problems += measure(arguments, database, server, kind, request)
                finally:
                    status = server.stop()
                if status != 0:
                    problems.append(f"{kind}: the server ended with {status}")
    for problem in problems:
        print(f"FAILED: {problem}")
    sys.exit(1 if problems else 0)


if __name__ == "__main__":
    main()
