"""A database whose epochs come and go, and the servers of it, for the tests that last."""

import http.client
import json
import random
import re
import socket
import subprocess
import sys
import time

START_SECONDS_MAX = 60
STOP_SECONDS_MAX = 120


class UnixConnection(http.client.HTTPConnection):
    """HTTP over a UNIX socket."""
    def __init__(self, path):
        super().__init__("localhost", timeout=60)
        self.path = path

    def connect(self):
        self.sock = socket.socket(socket.AF_UNIX)
        self.sock.settimeout(self.timeout)
        self.sock.connect(str(self.path))


def make_certificate(folder):
    """cert.pem and key.pem, of localhost."""
    subprocess.run(["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes", "-subj",
                    "/CN=localhost", "-addext", "subjectAltName=DNS:localhost", "-days", "2", "-keyout",
                    folder / "key.pem", "-out", folder / "cert.pem"], check=True, capture_output=True)


class Database:
    """Half of the keys keep their values, and are what good clients ask for; the others change with every epoch."""
    def __init__(self, programs, folder, directory, keys, value_bytes):
        self.programs = programs
        self.folder = folder
        self.directory = directory
        self.keys = keys
        self.value_bytes = value_bytes
        self.version = 0
        self.stable = folder / "stable.tsv"
        text = "s" * value_bytes
        self.stable.write_text("".join(f"stable {i}\t{text}{i}\n" for i in range(keys // 2)))

    def write_next(self):
        """Writes the next version's keys and values."""
        self.version += 1
        chosen = random.Random(self.version)
        text = "c" * self.value_bytes
        changing = (f"changing {i}\t{text}{self.version} {chosen.random()}\n" for i in range(self.keys // 2))
        (self.folder / "map.tsv").write_text(self.stable.read_text() + "".join(changing))

    def run_build(self):
        return subprocess.run([self.programs / "blindfuse", "build", self.folder / "map.tsv", "--output", self.directory,
                               "--mode", "hint", "--shards", "8", "--threads", "1"], capture_output=True, text=True)

    def build(self):
        """A new epoch."""
        self.write_next()
        result = self.run_build()
        if result.returncode != 0:
            sys.exit(f"FAILED: blindfuse build ended with {result.returncode}: {result.stderr}")


    def epoch(self):
        return json.loads((self.directory / "manifest.json").read_text())["epoch"]

    def query_bytes(self):
        found = subprocess.run([self.programs / "blindfuse", "inspect", self.directory, "--json"], check=True,
                               capture_output=True)
        return json.loads(found.stdout)["query_bytes"]


class Server:
    """`blindfuse serve`, with TLS by cert.pem and key.pem in `folder`, or without."""
    def __init__(self, programs, folder, directory, tls, options):
        self.scheme = "https" if tls else "http"
        self.admin = folder / f"{self.scheme}.admin"
        self.log = folder / f"{self.scheme}.log"
        ready = folder / f"{self.scheme}.url"
        ready.unlink(missing_ok=True)
        if tls:
            options = [*options, "--tls-cert", folder / "cert.pem", "--tls-key", folder / "key.pem"]
        with self.log.open("w") as log:
            # It ends with this program, even if that is killed.
            self.process = subprocess.Popen(
                ["setpriv", "--pdeathsig", "KILL", programs / "blindfuse", "serve", directory, "--listen", "127.0.0.1:0",
                 "--ready-file", ready, "--admin-listen", f"unix:{self.admin}", *map(str, options)], stderr=log)
        given_up = time.monotonic() + START_SECONDS_MAX
        while not ready.exists():
            if self.process.poll() is not None or time.monotonic() > given_up:
                sys.exit(f"FAILED: the server did not start: {self.log.read_text()}")
            time.sleep(0.1)
        self.port = int(ready.read_text().strip().rsplit(":", 1)[1])
        # By the name that stands in the certificate.
        self.url = f"{self.scheme}://localhost:{self.port}"

    def metrics(self):
        connection = UnixConnection(self.admin)
        connection.request("GET", "/metrics")
        text = connection.getresponse().read().decode()
        connection.close()
        return {name: float(value) for name, value in re.findall(r"^([^#\s]\S*) (\S+)$", text, re.MULTILINE)}

    def signal(self, number):
        self.process.send_signal(number)

    def stop(self):
        """The exit status."""
        if self.process.poll() is None:
            self.process.terminate()
        try:
            return self.process.wait(timeout=STOP_SECONDS_MAX)
        except subprocess.TimeoutExpired:
            self.process.kill()
            return self.process.wait()


class Load:
    """Good clients of one server, whose answers are checked."""
    def __init__(self, programs, server, database, clients, seconds, options):
        command = [programs / "blindfuse-bench-load", server.url, "--json", "--expect", database.stable, "--concurrency",
                   clients, "--seconds", seconds, "--warmup", 1, *options]
        if server.scheme == "https":
            command += ["--ca-file", database.folder / "cert.pem"]
        self.process = subprocess.Popen([str(part) for part in command], stdout=subprocess.PIPE, text=True)
        self.measured = None

    def is_running(self):
        return self.process.poll() is None

    def result(self):
        """What the clients measured, once they have ended."""
        if self.measured is None:
            self.measured = json.loads(self.process.communicate()[0] or "{}")
        return self.measured

    def was_right(self):
        """Whether answers came, were checked, and were as they should be. An epoch that is gone is not an error."""
        result = self.result()
        return (self.process.returncode == 0 and not set(result["errors"]) - {"410"} and not result["mismatches"] and
                result["checked"] > 0)
