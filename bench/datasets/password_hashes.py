#!/usr/bin/env python3
"""A list of compromised passwords of any size, in the format of the public ones: `SHA1:COUNT`, one a line.

SHA1 is the SHA-1 of a password in 40 upper-case hex digits, COUNT how often the password was seen in breaches. A few
well-known weak passwords come first (--known prints them), so that there is something to ask for; the other hashes
are pseudorandom. Most counts are 1 or 2, a few of a long list are in the millions. A line
does not depend on --keys, so a larger list extends a smaller one.

`blindfuse build` reads --tsv, or the list through `tr : '\\t'`, with --key-encoding hex: keys are then the 20 bytes
of a hash, and values are counts in decimal digits."""

from __future__ import annotations

import array
import gzip
import hashlib
import json
import operator
from typing import Any, Iterator

import tsv

BLOCK_KEYS = 1 << 14  # hashes that one call of the generator makes
HASH_BYTES = 20

# Counts of the size that the most common passwords have; the list is pseudorandom anyway.
KNOWN = {
    "123456": 37_359_195,
    "123456789": 16_629_796,
    "qwerty": 10_556_095,
    "password": 9_545_824,
    "12345678": 6_774_332,
    "111111": 4_924_331,
    "qwerty123": 4_281_560,
    "1q2w3e": 3_812_076,
    "1234567890": 3_447_911,
    "abc123": 2_970_458,
    "password1": 2_641_209,
    "iloveyou": 2_201_577,
    "000000": 1_967_814,
    "monkey": 1_402_336,
    "dragon": 1_246_809,
    "letmein": 803_125,
    "sunshine": 612_480,
    "admin": 487_903,
    "welcome": 455_218,
    "football": 391_047,
}

# This many are as frequent as c or more: c^-SKEW. Of 10^8 counts about 25 are above a million then.
SKEW = 1.1
COUNT_MAX = 99_999_999
STEPS = 1 << 16  # of the table from 16 random bits to a count

PREFIX_DIGITS = 5  # hex digits that a client of a range service sends
PREFIXES = 16**PREFIX_DIGITS
# In such a service's answer these are not repeated, and a line ends in CRLF: per line, against one of the list.
RANGE_LINE_SAVES = PREFIX_DIGITS - 1


def known_hash(password: str) -> str:
    return hashlib.sha1(password.encode()).hexdigest().upper()


def count_of(share: float) -> int:
    """The count that this share of all counts reaches; share is above 0 and at most 1."""
    return min(COUNT_MAX, int(share ** (-1 / SKEW)))


def rare_count(hash_hex: str) -> int:
    """One of the largest counts, which 16 random bits are too few for."""
    more = int.from_bytes(hashlib.sha256(hash_hex.encode()).digest()[:4], "little")
    return count_of((more + 1) / 2**32 / STEPS)


class Ranges:
    """What a range service would send: of a prefix in the mean, and of the one prefix whose lines it keeps."""

    def __init__(self, sample: str) -> None:
        self.keys = self.list_bytes = 0
        self.sample = sample.encode()
        self.sample_lines: list[bytes] = []

    def add(self, count: int, block: bytes) -> None:
        """A block of this many lines."""
        self.keys += count
        self.list_bytes += len(block)
        at = block.find(self.sample)
        while at >= 0:
            # Only at the beginning of a line is it a prefix.
            if at == 0 or block[at - 1] == ord("\n"):
                self.sample_lines.append(block[at + PREFIX_DIGITS : block.index(b"\n", at)])
            at = block.find(self.sample, at + 1)

    def json(self) -> dict[str, Any]:
        sample = b"\r\n".join([*sorted(self.sample_lines), b""])
        return {
            "prefix_digits": PREFIX_DIGITS,
            "prefix_bits": 4 * PREFIX_DIGITS,
            "mean_bytes": (self.list_bytes - self.keys * RANGE_LINE_SAVES) / PREFIXES,
            "sample": {"prefix": self.sample.decode(), "gzip_bytes": len(gzip.compress(sample, 9, mtime=0))},
        }


def known_block(count: int, separator: str, ranges: Ranges | None) -> bytes:
    """The lines of the first of the well-known passwords."""
    counts = {known_hash(password): seen for password, seen in list(KNOWN.items())[:count]}
    block = "".join(f"{key}{separator}{seen}\n" for key, seen in counts.items()).encode()
    if ranges:
        ranges.add(len(counts), block)
    return block


def random_block(first: int, count: int, table: list[str], separator: str, ranges: Ranges | None) -> bytes:
    """The lines of `count` random hashes, from number `first`."""
    stream = hashlib.shake_256(f"blindfuse/compromised-credentials/0/{first}".encode())
    # A whole block whatever the count: where its second part begins must not depend on that.
    data = stream.digest(BLOCK_KEYS * (HASH_BYTES + 2))
    hashes = data[: count * HASH_BYTES]
    steps = array.array("H", data[BLOCK_KEYS * HASH_BYTES :])[:count]
    parts = [""] * (2 * count)
    parts[0::2] = hashes.hex("\n", HASH_BYTES).upper().split("\n")
    # itemgetter() makes no tuple of a single index, so there is one more than needed.
    parts[1::2] = operator.itemgetter(*steps, 0)(table)[:count]
    at = -1
    for _ in range(steps.count(0)):
        at = steps.index(0, at + 1)
        parts[2 * at + 1] = f"{separator}{rare_count(parts[2 * at])}\n"
    block = "".join(parts).encode()
    if ranges:
        ranges.add(count, block)
    return block


def blocks(keys: int, separator: str, ranges: Ranges | None) -> Iterator[bytes]:
    known = min(keys, len(KNOWN))
    yield known_block(known, separator, ranges)
    table = [f"{separator}{count_of((i + 0.5) / STEPS)}\n" for i in range(STEPS)]
    for first in range(0, keys - known, BLOCK_KEYS):
        yield random_block(first, min(BLOCK_KEYS, keys - known - first), table, separator, ranges)


def main() -> None:
    parser = tsv.parser(__doc__)
    what = parser.add_mutually_exclusive_group(required=True)
    what.add_argument("--keys", type=tsv.natural, metavar="N", help="so many hashes")
    what.add_argument("--known", action="store_true", help="the well-known passwords in it instead, one a line")
    parser.add_argument("--tsv", action="store_true", help="a tab instead of the colon, as blindfuse build reads it")
    parser.add_argument(
        "--ranges",
        metavar="FILE",
        help="also write to FILE, as JSON, what a range service would send of this list: the lines and bytes for "
        f"a prefix of {PREFIX_DIGITS} hex digits",
    )
    arguments = parser.parse_args()
    if arguments.known:
        tsv.write_blocks(f"{password}\n".encode() for password in KNOWN)
        return
    ranges = Ranges(known_hash("password")[:PREFIX_DIGITS]) if arguments.ranges else None
    tsv.write_blocks(blocks(arguments.keys, "\t" if arguments.tsv else ":", ranges))
    if ranges:
        with open(arguments.ranges, "w", encoding="utf-8") as file:
            json.dump(ranges.json(), file)


if __name__ == "__main__":
    main()
