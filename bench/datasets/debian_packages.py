#!/usr/bin/env python3
"""Debian's package index as TSV: package name, and all that the index says of the package as it stands there, in hex.

Runs `apt-cache dumpavail`. Of a package that occurs more than once, the first paragraph counts."""

import re
import subprocess

import tsv

PACKAGE = re.compile(rb"^Package: (.*)$", re.MULTILINE)


def paragraphs(data):
    """Maps each package's name to its whole paragraph, bytes."""
    found = {}
    for paragraph in data.split(b"\n\n"):
        if name := PACKAGE.search(paragraph):
            found.setdefault(name[1], paragraph.strip(b"\n") + b"\n")
    return found


def dumpavail():
    try:
        return subprocess.run(["apt-cache", "dumpavail"], check=True, capture_output=True).stdout
    except FileNotFoundError:
        tsv.fail("there is no apt-cache here; it belongs to the Debian package apt")
    except subprocess.CalledProcessError as error:
        tsv.fail(f"apt-cache dumpavail failed: {error.stderr.decode(errors='replace').strip()}")


def main():
    tsv.parser(__doc__).parse_args()
    found = paragraphs(dumpavail())
    if not found:
        tsv.fail("apt knows no packages; run apt-get update first")
    tsv.write((name.decode(), found[name].hex()) for name in sorted(found))


if __name__ == "__main__":
    main()
