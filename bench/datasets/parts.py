#!/usr/bin/env python3
"""Splits long values over numbered keys: TSV with values in hex, from standard input to standard output.

The value of KEY begins with the number of its parts in decimal and a line feed; then comes the value itself, as much as
there is room for in --part-bytes. The second part and those after it have the keys KEY/2, KEY/3, ... and are
--part-bytes long, except the last. Whoever looks KEY up reads the number and asks for the others together."""

import sys

import tsv


def split(value, part_bytes):
    """The parts of a value. `count` depends on its own length in decimal, so it is looked for."""
    count = 1
    while True:
        head = f"{count}\n".encode()
        room = part_bytes - len(head)
        needed = 1 + max(0, -(-(len(value) - room) // part_bytes))
        if needed <= count:
            break
        count = needed
    rest = value[room:]
    return [head + value[:room]] + [rest[i:i + part_bytes] for i in range(0, len(rest), part_bytes)]


def join(parts):
    """The value that these parts, all of them and in order, are of."""
    count, _, first = parts[0].partition(b"\n")
    if int(count) != len(parts):
        raise ValueError(f"a value of {int(count)} parts, of which {len(parts)} are given")
    return first + b"".join(parts[1:])


def key_of(key, number):
    """The key of a part; the first is number 1."""
    return key if number == 1 else f"{key}/{number}"


def rows(lines, part_bytes):
    for number, line in enumerate(lines, 1):
        key, tab, digits = line.rstrip("\n").partition("\t")
        try:
            value = bytes.fromhex(digits)
        except ValueError:
            tab = ""
        if not tab:
            tsv.fail(f"line {number} of the input is not a key, a tab and a value in hex")
        for i, part in enumerate(split(value, part_bytes), 1):
            yield f"{key_of(key, i)}\t{part.hex()}\n".encode()


def main():
    parser = tsv.parser(__doc__)
    parser.add_argument("--part-bytes", type=tsv.natural, required=True, metavar="N", help="at least 16")
    arguments = parser.parse_args()
    if arguments.part_bytes < 16:
        tsv.fail("--part-bytes has to be at least 16")
    sys.stdin.reconfigure(encoding="utf-8", errors="strict")
    tsv.write_blocks(rows(sys.stdin, arguments.part_bytes))


if __name__ == "__main__":
    main()
