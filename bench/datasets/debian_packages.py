#!/usr/bin/env python3
"""Debian's package index as TSV: package name, and all that the index says of the package as it stands there, in hex.

Runs `apt-cache dumpavail`. Where a package occurs more than once, its newest version counts."""

import re
import subprocess

import tsv

FIELDS = re.compile(rb"^(Package|Version): (.*)$", re.MULTILINE)
PIECES = re.compile(r"([^0-9]*)([0-9]*)")


def order(character):
    """How characters of a version compare: `~` before the end (0), then letters, then all others."""
    if character == "~":
        return -1
    return ord(character) if character.isalpha() else ord(character) + 256


def version_key(version):
    """A sort key with the order of Debian policy, section 5.6.12."""
    epoch, _, rest = version.rpartition(":")
    upstream, _, revision = rest.rpartition("-") if "-" in rest else (rest, "", "")
    key = [int(epoch or 0)]
    for part in (upstream, revision):
        key.append([([order(c) for c in text] + [0], int(number or 0))
                    for text, number in PIECES.findall(part)])
    return key


def paragraphs(data):
    """Maps each package's name to its version and its whole paragraph, bytes."""
    newest = {}
    for paragraph in data.split(b"\n\n"):
        fields = dict(FIELDS.findall(paragraph))
        name, version = fields.get(b"Package"), fields.get(b"Version", b"").decode()
        if name and (name not in newest or version_key(version) > version_key(newest[name][0])):
            newest[name] = version, paragraph.strip(b"\n") + b"\n"
    return newest


def dumpavail():
    try:
        return subprocess.run(["apt-cache", "dumpavail"], check=True, capture_output=True).stdout
    except FileNotFoundError:
        tsv.fail("there is no apt-cache here; it belongs to the Debian package apt")
    except subprocess.CalledProcessError as error:
        tsv.fail(f"apt-cache dumpavail failed: {error.stderr.decode(errors='replace').strip()}")


def main():
    tsv.parser(__doc__).parse_args()
    newest = paragraphs(dumpavail())
    if not newest:
        tsv.fail("apt knows no packages; run apt-get update first")
    tsv.write((name.decode(), newest[name][1].hex()) for name in sorted(newest))


if __name__ == "__main__":
    main()
