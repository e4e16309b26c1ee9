#!/usr/bin/env python3
"""The numbers that docs/PROTOCOL.md works out in its text are those of plain_scheme.py, which the vectors come from, and
the sizes of manifests that it gives are those of the manifests in the vectors.

worked_numbers_test.py --source FOLDER"""

import argparse
import json
import pathlib
import re
import sys

import plain_numpy  # noqa: F401
import numpy

import plain_scheme as scheme
from plain_scheme import mix64, mulhi, pack, restore, round_words, sha256

SALT, SEED = bytes(range(16)), bytes(range(32))
ROW_COUNT, QUERY_BITS, DIMENSION, ROWS = 64, 28, 1774, (3, 20, 57)


def hex64(number):
    return f"0x{number:016x}"


def hex32(number):
    return f"0x{int(number):08x}"


def key_lines():
    shard_count, filter_seed, row_count, segment_length = 5, 0x0123456789ABCDEF, 512, 64
    h, x0, x1 = scheme.key_hash(SALT, b"cocoa")
    mix0 = mix64(x1 + filter_seed & scheme.U64)
    mix1 = mix64(mix0 + 0x9E3779B97F4A7C15 & scheme.U64)
    rows = scheme.rows_of(x1, filter_seed, 3, row_count, segment_length)
    return [
        f"salt   = {SALT.hex()}",
        f"key    = {b'cocoa'.hex()} (cocoa)",
        f"hash   = {h.hex()}",
        f"x0     = {hex64(x0)}    S = {shard_count}: shard = {mulhi(x0, shard_count)}",
        f"x1     = {hex64(x1)}    digest_bytes = 8: digest = {h[16:24].hex()}",
        f"seed   = {hex64(filter_seed)}    R = {row_count}, L = {segment_length}, arity = 3: starts = "
        f"{row_count // segment_length - 2}",
        f"mix0   = {hex64(mix0)}    mix1 = {hex64(mix1)}",
        f"row[0] = {rows[0]}    row[1] = {rows[1]}    row[2] = {rows[2]}",
    ]


def record_lines():
    sizes = argparse.Namespace(digest_bytes=8, length_bytes=1, value_bytes=6)
    digest = scheme.key_hash(SALT, b"cocoa")[0][16:24]
    record = scheme.make_record(sizes, b"hot", digest)
    return [f"digest_bytes = 8, length_bytes = 1, value_bytes = 6: W = {len(record)}",
            f"value  = {b'hot'.hex()} (hot)",
            f"record = {record.hex()}"]


def rounding_lines():
    lines = []
    for word, why in ((0x12345677, "down"), (0x12345678, "a tie, to even: up"), (0x12345688, "a tie, to even: down"),
                      (0xFFFFFFFC, "up, modulo 2^28")):
        rounded = round_words(numpy.array([word], dtype=numpy.uint32), 28)
        lines.append(f"round({hex32(word)}) = 0x{int(rounded[0]):07x}    restore = "
                     f"{hex32(restore(rounded, 28)[0])}    ({why})")
    numbers = numpy.array([0xABC, 0x123, 0xFFF], dtype=numpy.uint32)
    return lines + [f"0xabc, 0x123, 0xfff as a bit sequence of 12 bits each: {pack(numbers, 12).hex()}"]


def query_lines():
    matrix = scheme.public_matrix(SEED, DIMENSION, ROW_COUNT)
    s = (numpy.arange(DIMENSION) % 3 - 1).astype(numpy.int32).view(numpy.uint32)
    e = (numpy.arange(ROW_COUNT) * 7 % 3 - 1).astype(numpy.int32).view(numpy.uint32)
    b = scheme.query_words(matrix, s, e, ROWS)
    rounded = round_words(b, QUERY_BITS)
    query = pack(rounded, QUERY_BITS)
    panel = matrix[0]
    return [
        f"A[0][0] = {hex32(panel[0][0])}    A[0][1] = {hex32(panel[0][1])}    A[1][0] = {hex32(panel[1][0])}    "
        f"A[1773][63] = {hex32(panel[1773][63])}",
        f"b[0]    = {hex32(b[0])}    b[3] = {hex32(b[3])}    b[63] = {hex32(b[63])}",
        f"rounded   0x{int(rounded[0]):07x}            0x{int(rounded[3]):07x}            0x{int(rounded[63]):07x}",
        f"query   = {query[:7].hex()}... of {len(query)} bytes, SHA-256 {sha256(query).hex()}",
    ]


def decoding_lines():
    lines = []
    for phase in (0x05123456, 0x057FFFFF, 0x05800000, 0xFF7FFFFF, 0xFF800000):
        byte = scheme.decode(numpy.array([phase], dtype=numpy.uint32))[0]
        lines.append(f"phase = {hex32(phase)}    byte = {byte}")
    return lines


# By the heading of their section.
BLOCKS = {"4": key_lines, "5": record_lines, "7": rounding_lines, "9": query_lines, "11": decoding_lines}


def sections_of(document):
    parts = re.split(r"^## (\d+)\. ", document, flags=re.MULTILINE)
    return dict(zip(parts[1::2], parts[2::2]))


def said_sizes(text):
    """Bytes of a manifest: by itself, with two levels, and what requests for several keys and a signature add."""
    found = re.search(r"some\s(\d+)\sbytes\slong, or (\d+) with two levels,\s(\d+) more with requests for several keys,"
                      r"\sand (\d+) more if\sit is signed", text)
    return [int(size) for size in found.groups()]


def size_of(members):
    """As the server writes it."""
    return len(json.dumps(members, indent=2)) + 1


def real_sizes(vectors):
    """The same of the manifests in the vectors."""
    valid = json.loads((vectors / "manifest.json").read_text())["valid"]
    signed = json.loads((vectors / "signature.json").read_text())["signed"]
    by_name = {case["name"]: json.loads(case["text"]) for case in valid}
    plain, levels, batch = (size_of(by_name[name]) for name in ("keyword-3", "two-levels", "batch"))
    members = {case["name"]: json.loads(case["text"]) for case in signed}["keyword"]
    unsigned = {name: value for name, value in members.items() if name not in scheme.SIGNATURE_MEMBERS}
    return [plain, levels, batch - size_of(by_name["packed-keyword"]), size_of(members) - size_of(unsigned)]


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--source", type=pathlib.Path, required=True, help="root of the source")
    root = parser.parse_args().source
    sections = sections_of((root / "docs/PROTOCOL.md").read_text())
    faults = 0
    for number, lines in BLOCKS.items():
        block = "```\n" + "\n".join(lines()) + "\n```\n"
        if block not in sections[number]:
            print(f"section {number} does not have this block:\n{block}")
            faults += 1
    said, real = said_sizes(sections["2"]), real_sizes(root / "tests/vectors")
    if any(abs(a - b) > 20 for a, b in zip(said, real)):
        print(f"section 2 says that manifests have {said} bytes; those of the vectors have {real}")
        faults += 1
    return 1 if faults else 0


if __name__ == "__main__":
    sys.exit(main())
