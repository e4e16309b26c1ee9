"""Runs the programs that are measured."""

import contextlib
import dataclasses
import http.client
import json
import os
import pathlib
import signal
import socket
import subprocess
import tempfile
import time
from typing import Any, Iterator

START_SECONDS = 600  # a server has to load and check its database first


class Failure(Exception):
    """A program failed, or a needed one is missing."""


@dataclasses.dataclass(frozen=True)
class Outcome:
    output: str
    seconds: float
    # The most memory it ever had resident; never less than this script's own, of which it began as a copy.
    peak_bytes: int

    def json(self) -> Any:
        return json.loads(self.output)

    def json_lines(self) -> list[Any]:
        return [json.loads(line) for line in self.output.splitlines() if line.startswith("{")]


def _pin(cores: set[int] | None) -> Any:
    return (lambda: os.sched_setaffinity(0, cores)) if cores else None


@dataclasses.dataclass(frozen=True)
class Programs:
    folder: pathlib.Path

    def path(self, name: str) -> pathlib.Path:
        found = self.folder / name
        if not os.access(found, os.X_OK):
            raise Failure(f"there is no program {found}; `make report` builds it")
        return found

    def run(
        self,
        name: str,
        *arguments: str | os.PathLike[str],
        cores: set[int] | None = None,
        accepted: tuple[int, ...] = (0,),
    ) -> Outcome:
        """Fails when the program's status is not one of those that are accepted."""
        command = [self.path(name), *arguments]
        with tempfile.TemporaryFile() as output, tempfile.TemporaryFile() as errors:
            began = time.monotonic()
            process = subprocess.Popen(
                command, stdin=subprocess.DEVNULL, stdout=output, stderr=errors, preexec_fn=_pin(cores)
            )
            try:
                _, status, usage = os.wait4(process.pid, 0)
            except BaseException:
                process.kill()
                process.wait()
                raise
            seconds = time.monotonic() - began
            process.returncode = os.waitstatus_to_exitcode(status)
            output.seek(0)
            if process.returncode not in accepted:
                errors.seek(0)
                text = errors.read().decode(errors="replace").strip()[-2000:]
                raise Failure(f"{name} {' '.join(map(str, arguments))}: status {process.returncode}\n{text}")
            return Outcome(output.read().decode(), seconds, usage.ru_maxrss * 1024)

    @contextlib.contextmanager
    def server(self, database: pathlib.Path, *options: str, cores: set[int] | None = None) -> Iterator[tuple[str, pathlib.Path]]:
        """Serves a database; gives the server's URL and the UNIX socket of its metrics."""
        with tempfile.TemporaryDirectory(prefix="blindfuse-report-") as folder:
            ready, log, metrics = (pathlib.Path(folder, name) for name in ("url", "log", "metrics"))
            with log.open("wb") as errors:
                process = subprocess.Popen(
                    [
                        self.path("blindfuse"),
                        "serve",
                        database,
                        "--listen",
                        "127.0.0.1:0",
                        "--ready-file",
                        ready,
                        "--admin-listen",
                        f"unix:{metrics}",
                        *options,
                    ],
                    stdin=subprocess.DEVNULL,
                    stdout=errors,
                    stderr=errors,
                    preexec_fn=_pin(cores),
                )
            try:
                deadline = time.monotonic() + START_SECONDS
                while not (ready.exists() and ready.read_text().strip()):
                    if process.poll() is not None or time.monotonic() > deadline:
                        raise Failure(f"the server did not start:\n{log.read_text()[-2000:]}")
                    time.sleep(0.02)
                yield ready.read_text().strip(), metrics
            finally:
                process.send_signal(signal.SIGTERM)
                try:
                    process.wait(60)
                except subprocess.TimeoutExpired:
                    process.kill()
                    process.wait()


def metric(metrics: pathlib.Path, name: str) -> float:
    """One of the server's metrics, by its name without labels."""
    connection = http.client.HTTPConnection("localhost", timeout=60)
    with socket.socket(socket.AF_UNIX) as connection.sock:
        connection.sock.connect(str(metrics))
        connection.request("GET", "/metrics")
        for line in connection.getresponse().read().decode().splitlines():
            if line.startswith(name + " "):
                return float(line.split()[1])
    raise Failure(f"the server has no metric {name}")
