#!/usr/bin/env python3
"""A thousand clients that read a byte a second, for each kind of response, plain and over TLS, while eight good clients
look keys up: the server's memory stays within what its options allow, and the good clients get right answers. Prints a line for
each kind; exits with 1 when something is wrong."""

import argparse
import http.client
import json
import os
import pathlib
import re
import resource
import socket
import ssl
import subprocess
import sys
import tempfile
import time

READERS = 1000
RESPONSE_BYTES_MAX = 32 << 20
# Connections, their TLS, what the allocator keeps, and the queue.
OTHER_BYTES = {"http": 40 << 20, "https": 64 << 20}
KEYS = 3000
VALUE_BYTES = 4000
QUERIES = 4  # in one request
LOAD_SECONDS = 5


class UnixConnection(http.client.HTTPConnection):
    """HTTP over a UNIX socket."""
    def __init__(self, path):
        super().__init__("localhost")
        self.path = path

    def connect(self):
        self.sock = socket.socket(socket.AF_UNIX)
        self.sock.connect(str(self.path))


class Readers:
    """Clients that send a request, and read a byte a second of the response."""
    def __init__(self, url, request, context):
        scheme, host, port = re.fullmatch(r"(https?)://([^:]+):(\d+)", url).groups()
        self.sockets = []
        for _ in range(READERS):
            client = socket.socket()
            # As on a network that is no loopback: the kernel takes little off the server's hands.
            client.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
            client.setsockopt(socket.IPPROTO_TCP, socket.TCP_MAXSEG, 536)
            client.settimeout(60)
            client.connect((host, int(port)))
            if scheme == "https":
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


class Server:
    def __init__(self, arguments, folder, tls):
        self.folder = folder
        self.admin = folder / ("admin-tls" if tls else "admin")
        ready = folder / ("url-tls" if tls else "url")
        options = ["--tls-cert", folder / "cert.pem", "--tls-key", folder / "key.pem"] if tls else []
        self.process = subprocess.Popen(
            ["setpriv", "--pdeathsig", "KILL", arguments.bin / "blindfuse", "serve", folder / "db", "--listen",
             "127.0.0.1:0", "--ready-file", ready, "--admin-listen", f"unix:{self.admin}", "--connections-max",
             str(2 * READERS), "--queue-max", str(2 * READERS * QUERIES), "--response-bytes-max",
             str(RESPONSE_BYTES_MAX), "--log-level", "error", *options])
        while not ready.exists():
            if self.process.poll() is not None:
                sys.exit("the server did not start")
            time.sleep(0.1)
        self.url = ready.read_text().strip()

    def metrics(self):
        connection = UnixConnection(self.admin)
        connection.request("GET", "/metrics")
        text = connection.getresponse().read().decode()
        connection.close()
        return {name: float(value) for name, value in re.findall(r"^([^#\s]\S*) (\S+)$", text, re.MULTILINE)}

    def stop(self):
        self.process.terminate()
        return self.process.wait(timeout=120)


def requests_of(folder, arguments):
    """One request for each kind of response."""
    manifest = json.loads((folder / "db" / "manifest.json").read_text())
    found = json.loads(subprocess.run([arguments.bin / "blindfuse", "inspect", folder / "db", "--json"], check=True,
                                      capture_output=True).stdout)
    path = f"/v1/epochs/{manifest['epoch']}"
    query_bytes = found["query_bytes"]

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


def load_options(folder, server):
    return ["--ca-file", folder / "cert.pem"] if server.url.startswith("https") else []


def measure(arguments, folder, server, kind, request):
    """The most memory that was seen, and what is wrong."""
    context = ssl.create_default_context(cafile=folder / "cert.pem")
    before = server.metrics()["process_resident_memory_bytes"]
    good = subprocess.Popen(
        [arguments.bin / "blindfuse-bench-load", server.url.replace("127.0.0.1", "localhost"), "--concurrency", "8",
         "--seconds", str(LOAD_SECONDS), "--warmup", "1", "--check-every", "1", "--expect", folder / "map.tsv",
         "--cache", folder / "cache", "--json", *load_options(folder, server)], stdout=subprocess.PIPE)
    readers = Readers(server.url, request, context)
    grown, reserved, next_byte = 0, 0, time.monotonic()
    while good.poll() is None:
        now = server.metrics()
        grown = max(grown, now["process_resident_memory_bytes"] - before)
        reserved = max(reserved, now['blindfuse_http_memory_bytes{of="responses"}'])
        if time.monotonic() >= next_byte:
            next_byte += 1
            readers.read()
        time.sleep(0.1)
    left = len(readers.sockets)
    readers.close()
    result = json.loads(good.stdout.read() or "{}")
    scheme = server.url.split(":")[0]
    line = {"kind": kind, "scheme": scheme, "memory_grown_mb": round(grown / 1e6), "reserved_mb": round(reserved / 1e6),
            "readers_left": left, "good_lookups": result.get("lookups"), "checked": result.get("checked"),
            "mismatches": result.get("mismatches"), "errors": result.get("errors"),
            "p99_ms": result.get("latency_ms", {}).get("p99")}
    print(json.dumps(line), flush=True)
    wrong = []
    if good.returncode != 0 or result["errors"] or result["mismatches"] or not result["checked"]:
        wrong.append(f"good clients: {result}")
    if reserved > RESPONSE_BYTES_MAX:
        wrong.append(f"responses held {reserved:.0f} bytes")
    if grown > RESPONSE_BYTES_MAX + OTHER_BYTES[scheme]:
        wrong.append(f"memory grew by {grown:.0f} bytes")
    return [f"{kind} ({scheme}): {text}" for text in wrong]


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--bin", type=pathlib.Path, default=pathlib.Path("build/bin"), help="folder of the programs")
    arguments = parser.parse_args()
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (min(hard, max(soft, 4 * READERS)), hard))
    problems = []
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        (folder / "map.tsv").write_text("".join(f"key {i}\t{'v' * VALUE_BYTES}{i}\n" for i in range(KEYS)))
        subprocess.run([arguments.bin / "blindfuse", "build", folder / "map.tsv", "--output", folder / "db", "--mode",
                        "hint", "--shards", "8"], check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        subprocess.run(["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes",
                        "-subj", "/CN=localhost", "-addext", "subjectAltName=DNS:localhost", "-days", "2", "-keyout",
                        folder / "key.pem", "-out", folder / "cert.pem"], check=True, capture_output=True)
        for tls in (False, True):
            for kind, request in requests_of(folder, arguments).items():
                (folder / ("url-tls" if tls else "url")).unlink(missing_ok=True)
                server = Server(arguments, folder, tls)
                try:
                    problems += measure(arguments, folder, server, kind, request)
                finally:
                    status = server.stop()
                if status != 0:
                    problems.append(f"{kind}: the server ended with {status}")
    for problem in problems:
        print(f"FAILED: {problem}")
    sys.exit(1 if problems else 0)


if __name__ == "__main__":
    main()
