#!/usr/bin/env python3
"""CMakeLists.txt has the version; programs, documents and examples say the same.

  version_test.py SOURCE_FOLDER PROGRAMS_FOLDER
"""
import pathlib
import re
import subprocess
import sys


def faults(source, programs):
    version = re.search(r"^project\(blindfuse VERSION ([0-9.]+) ", (source / "CMakeLists.txt").read_text(), re.M)[1]
    minor = version.rpartition(".")[0]

    def said(path, pattern):
        found = re.findall(pattern, (source / path).read_text(), re.M)
        if not found:
            yield f"{path}: nothing there says the version"
        for other in found:
            if other not in (version, minor):
                yield f"{path} says {other}, and CMakeLists.txt {version}"

    yield from said("client/example/CMakeLists.txt", r"find_package\(blindfuse ([0-9.]+)")
    yield from said("docs/clients/cpp.md", r"find_package\(blindfuse ([0-9.]+)")
    yield from said("docs/clients/cpp.md", r"libblindfuse-client\.so\.([0-9.]*[0-9])")
    yield from said("docs/COMPATIBILITY.md", r"find_package\(blindfuse ([0-9.]+)")
    yield from said("docs/COMPATIBILITY.md", r"libblindfuse-client\.so\.([0-9.]*[0-9])")
    # The newest version with a section of its own, after what is not released yet.
    changelog = re.findall(r"^## \[([0-9][^\]]*)\] - \d{4}-\d{2}-\d{2}$", (source / "CHANGELOG.md").read_text(), re.M)
    if changelog[:1] != [version]:
        yield f"CHANGELOG.md: the newest version is {changelog[:1]}, and that of CMakeLists.txt is {version}"
    for program in ("blindfuse", "blindfuse-client"):
        shown = subprocess.run([programs / program, "--version"], capture_output=True, text=True, check=True).stdout
        lines = dict(line.rsplit(" ", 1) for line in shown.splitlines()[:2])
        if lines.get(program) != version:
            yield f"{program} --version says {shown!r}, and CMakeLists.txt {version}"
        if not (source / ".git").exists():
            continue  # an unpacked archive
        # What was built before the last commit is of an earlier one.
        known = subprocess.run(["git", "-C", source, "cat-file", "-e", lines.get("commit", "").removesuffix("-dirty") + "^{commit}"])
        if known.returncode != 0:
            yield f"{program} --version says {shown!r}, whose commit git does not know"


def main():
    found = list(faults(pathlib.Path(sys.argv[1]), pathlib.Path(sys.argv[2])))
    for fault in found:
        print(fault)
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
