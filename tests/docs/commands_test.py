#!/usr/bin/env python3
"""The commands of the documents: those of blindfuse have the options that they are shown with, and those of README's
tour print what README says.

  commands_test.py SOURCE PROGRAMS"""
import functools
import os
import pathlib
import re
import subprocess
import sys
import tempfile

COMMAND = re.compile(r"\b(blindfuse(?:-client)?) ([a-z][a-z-]+)((?:[^|;&`\n]|\\\n)*)")
# The tour sleeps until the server has the newest epoch. Here it waits for exactly that.
WAIT = """
trap 'kill $(jobs -p) 2>/dev/null || true' EXIT
sleep() {
  local newest
  newest=$(blindfuse inspect drinks.blindfuse --json | grep '"epoch"')
  until blindfuse-client sync URL --json 2>/dev/null | grep -qF "$(cut -d '"' -f 4 <<<"$newest")"; do
    command sleep 0.05
  done
}
"""


def documents_of(source):
    yield from sorted(source.glob("*.md"))
    yield from sorted((source / "docs").rglob("*.md"))


@functools.cache
def options_of(programs, program, command):
    """The options of a command, or None if there is no such command."""
    shown = subprocess.run([programs / program, command, "--help-all"], capture_output=True, text=True, timeout=60)
    return set(re.findall(r"^  (?:-\w, )?(--[a-z-]+)", shown.stdout, re.MULTILINE)) if shown.returncode == 0 else None


def commands_of(markdown):
    """Each program of blindfuse, command and rest of a command line, in blocks of shell and in code within a line."""
    blocks = re.findall(r"^```sh\n(.*?)^```", markdown, re.MULTILINE | re.DOTALL)
    for code in [re.sub(r"\s#.*", "", block) for block in blocks] + re.findall(r"`(blindfuse[^`\n]*)`", markdown):
        yield from COMMAND.findall(code)


def unknown_options(source, programs):
    count = 0
    for path in documents_of(source):
        for program, command, rest in commands_of(path.read_text(encoding="utf-8")):
            count += 1
            known = options_of(programs, program, command)
            for option in re.findall(r"(?<!\S)--[a-z][a-z-]*", rest) if known is not None else ():
                if option not in known:
                    yield f"{path.relative_to(source)}: {program} {command} has no option {option}"
    if count < 40:
        yield f"only {count} commands were found"


def tour_of(readme):
    """The lines of the block that makes drinks.tsv, without those that compile."""
    blocks = re.findall(r"^```sh\n(.*?)^```", readme, re.MULTILINE | re.DOTALL)
    tour = next(block for block in blocks if "drinks.tsv" in block)
    return [line for line in tour.splitlines() if not line.startswith("make ")]


def wrong_tour(source, programs):
    tour = tour_of((source / "README.md").read_text(encoding="utf-8"))
    said = [found for line in tour for found in re.findall(r"# prints: (.*)$", line)]
    # An address of loopback for this process alone, and a port that the system gives to no one.
    address = f"127.73.{os.getpid() >> 8 & 255}.{os.getpid() & 255}:18080"
    script = "\n".join(["set -e", WAIT.replace("URL", f"http://{address}"), *tour]).replace("127.0.0.1:8080", address)
    with tempfile.TemporaryDirectory() as folder:
        environment = os.environ | {"PATH": f"{programs.resolve()}:{os.environ['PATH']}", "XDG_CACHE_HOME": folder}
        ran = subprocess.run(["bash", "-c", script], cwd=folder, env=environment, capture_output=True, text=True,
                             timeout=120)
    printed = [line for line in ran.stdout.splitlines() if line in said]
    if ran.returncode != 0 or printed != said or len(said) < 2:
        yield f"README.md: the tour prints {ran.stdout!r}, and not {said}, with status {ran.returncode}: {ran.stderr}"


def main():
    source, programs = map(pathlib.Path, sys.argv[1:])
    faults = [*unknown_options(source, programs), *wrong_tour(source, programs)]
    for fault in faults:
        print(fault)
    return 1 if faults else 0


if __name__ == "__main__":
    sys.exit(main())
