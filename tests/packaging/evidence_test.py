#!/usr/bin/env python3
"""The evidence that docs/THREAT_MODEL.md names is there: its tests in the source, its options in --help. And it
is still a page.

  evidence_test.py SOURCE_FOLDER PROGRAMS_FOLDER
"""
import pathlib
import re
import subprocess
import sys

LINES_MAX = 120
TESTS_MIN = 15  # it names more; fewer, and this test looks in the wrong way
COMMANDS = (["blindfuse", "build"], ["blindfuse", "serve"], ["blindfuse", "inspect"], ["blindfuse-client", "sync"])


def tests_of(source):
    """The C++ tests of the source, as Suite.Name."""
    for path in (source / "tests").rglob("*.cpp"):
        for suite, name in re.findall(r"^TEST(?:_F|_P)?\(\s*(\w+),\s*(\w+)\)", path.read_text(), re.M):
            yield f"{suite}.{name}"


def faults(source, programs):
    text = (source / "docs" / "THREAT_MODEL.md").read_text()
    if (lines := text.count("\n")) > LINES_MAX:
        yield f"it has {lines} lines; at most {LINES_MAX} are a page"
    named = set(re.findall(r"`([A-Z]\w+\.[A-Z]\w+)`", text)) - {"Suite.Name"}
    if len(named) < TESTS_MIN:
        yield f"it names only {len(named)} tests"
    for name in sorted(named - set(tests_of(source))):
        yield f"there is no test {name}"
    helps = "".join(subprocess.run([programs / command[0], *command[1:], "--help"], capture_output=True, text=True,
                                   check=True).stdout for command in COMMANDS)
    options = set(re.findall(r"(?<![\w-])(--[a-z][a-z-]+)", text))
    for option in sorted(options - set(re.findall(r"--[a-z][a-z-]+", helps))):
        yield f"no command has the option {option}"


def main():
    found = list(faults(pathlib.Path(sys.argv[1]), pathlib.Path(sys.argv[2])))
    for fault in found:
        print(f"docs/THREAT_MODEL.md: {fault}")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
