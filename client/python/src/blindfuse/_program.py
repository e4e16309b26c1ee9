"""The operator's program `blindfuse`: where it is, and how it is run."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sysconfig
from pathlib import Path
from typing import IO

from ._errors import BlindfuseError, ResourceError

# Becomes the program, and leaves behind who waits for the end of this process, which closes the pipe: then the program
# is told to finish. (A signal at the parent's death would come with the death of the thread that started it.) A line
# in the pipe says that the program has ended already.
_UNTIL_PARENT_DIES = """
program=$$
exec 3<&0 </dev/null
(read -r ended <&3 || kill -TERM "$program") >/dev/null 2>&1 &
exec 3<&-
exec "$@"
"""


def find_program() -> str:
    """$BLINDFUSE_PROGRAM, or `blindfuse` among this Python's scripts, or on the PATH."""
    named = os.environ.get("BLINDFUSE_PROGRAM")
    if named:
        if os.access(named, os.X_OK) and os.path.isfile(named):
            return named
        raise ResourceError(f"BLINDFUSE_PROGRAM is {named}, which is not a program; let it name the program `blindfuse`")
    beside = Path(sysconfig.get_path("scripts")) / "blindfuse"
    found = str(beside) if os.access(beside, os.X_OK) else shutil.which("blindfuse")
    if found is None:
        raise ResourceError(
            "the program `blindfuse`, which builds and serves databases, is not to be found; install it (Debian: the "
            "package blindfuse, or `make build`), and put it on the PATH or name it in BLINDFUSE_PROGRAM"
        )
    return found


def run(arguments: list[str], given: IO[bytes]) -> subprocess.CompletedProcess[bytes]:
    """The program, to its end."""
    program = find_program()
    try:
        return subprocess.run([program, *arguments], stdin=given, capture_output=True)
    except OSError as error:
        raise ResourceError(f"cannot start {program}: {error.strerror}") from error


def start_with_this_process(arguments: list[str], log: IO[bytes]) -> subprocess.Popen[bytes]:
    """The program until this process ends or `stop` is called; Ctrl-C at the terminal is not for it."""
    return subprocess.Popen(
        ["/bin/sh", "-c", _UNTIL_PARENT_DIES, "sh", find_program(), *arguments],
        stdin=subprocess.PIPE,
        stdout=subprocess.DEVNULL,
        stderr=log,
        start_new_session=True,
    )


def stop(process: subprocess.Popen[bytes], timeout: float) -> int:
    """Lets it finish what it has begun, for so long; returns its exit status."""
    if process.poll() is None:
        process.terminate()
        try:
            process.wait(timeout)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()
    assert process.stdin is not None
    try:
        process.stdin.write(b"ended\n")
        process.stdin.close()
    except OSError:
        pass  # who waited has gone
    return process.returncode


def failure(what: str, log: str) -> BlindfuseError:
    """What the program's last words say, to somebody who does not see its command line."""
    lines = [line for line in log.splitlines() if line.strip()]
    words = next((line for line in reversed(lines) if line.startswith("blindfuse: ")), lines[-1] if lines else "")
    words = words.removeprefix("blindfuse: ").replace("standard input, line ", "item ")
    words = re.sub(r"--([a-z]+(?:-[a-z]+)*)", lambda option: option[1].replace("-", "_") + "=", words)
    return BlindfuseError(f"{what}: {words or 'it said nothing; run it in a terminal'}")
