#!/usr/bin/env python3
"""Debian's package index as TSV: package name and description.

Reads what `apt-cache dumpavail` prints from standard input, or runs it when standard input is a terminal or
--run is given. The lines of a long description are joined with spaces. With --paragraphs the value is all that
the index says of a package, as it stands there, in hex. Where a package occurs more than once, its newest
version counts."""

import re
import subprocess
import sys

import tsv

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


def stanzas(lines):
    """The fields of each package, by name; a field's lines are joined with spaces."""
    fields, name = {}, None
    for line in lines:
        line = line.rstrip("\n")
        if not line:
            if fields:
                yield fields
            fields, name = {}, None
        elif line[0] in " \t":
            text = line.strip()
            if name and text != ".":  # a lone full stop is an empty line
                fields[name] += " " + text
        else:
            name, _, text = line.partition(":")
            fields[name] = text.strip()
    if fields:
        yield fields


def descriptions(lines):
    """Maps each package's name to its version and description."""
    newest = {}
    for fields in stanzas(lines):
        if "Package" not in fields:
            tsv.fail("the input is not what `apt-cache dumpavail` prints: "
                     "a paragraph has no Package field")
        name, version = fields["Package"], fields.get("Version", "")
        text = fields.get("Description") or fields.get("Description-en", "")
        if name not in newest or version_key(version) > version_key(newest[name][0]):
            newest[name] = version, text
    return newest


def paragraphs(data):
    """Maps each package's name to its version and its whole paragraph, bytes."""
    newest = {}
    for paragraph in data.split(b"\n\n"):
        paragraph = paragraph.strip(b"\n")
        for fields in stanzas(paragraph.decode().splitlines()):
            name, version = fields.get("Package"), fields.get("Version", "")
            if name and (name not in newest or version_key(version) > version_key(newest[name][0])):
                newest[name] = version, paragraph + b"\n"
    return newest


def dumpavail():
    try:
        return subprocess.run(["apt-cache", "dumpavail"], check=True, capture_output=True).stdout
    except FileNotFoundError:
        tsv.fail("there is no apt-cache here; it belongs to the Debian package apt")
    except subprocess.CalledProcessError as error:
        tsv.fail(f"apt-cache dumpavail failed: {error.stderr.decode(errors='replace').strip()}")


def main():
    parser = tsv.parser(__doc__, value_bytes=0)
    parser.add_argument("--run", action="store_true",
                        help="run apt-cache dumpavail whatever standard input is")
    parser.add_argument("--paragraphs", action="store_true",
                        help="all that the index says of a package, in hex, instead of its description")
    arguments = parser.parse_args()
    if arguments.paragraphs and arguments.value_bytes:
        tsv.fail("--value-bytes cuts descriptions; it does not go with --paragraphs")

    given = not arguments.run and not sys.stdin.isatty()
    data = sys.stdin.buffer.read() if given else dumpavail()
    try:
        newest = paragraphs(data) if arguments.paragraphs else descriptions(data.decode().splitlines())
    except UnicodeDecodeError as error:
        tsv.fail(f"the input is not UTF-8 at byte {error.start}")
    if not newest:
        tsv.fail("no packages on standard input; pipe `apt-cache dumpavail` in, or give --run" if given
                 else "apt knows no packages; run apt-get update first")
    if arguments.paragraphs:
        newest = {name: (version, text.hex()) for name, (version, text) in newest.items()}
    tsv.write(((name, newest[name][1]) for name in sorted(newest)), arguments.value_bytes)


if __name__ == "__main__":
    main()
