#!/usr/bin/env python3
"""A map of any size as TSV: `key-0<tab><hex>`, `key-1<tab><hex>`, ...

Values are pseudorandom bytes in lower-case hex: build such a file with values
read as hex, and each has exactly --value-bytes bytes. The value of a key does not depend on --keys, so a
larger map extends a smaller one."""

import hashlib

import tsv

BLOCK_KEYS = 1 << 14  # keys that one call of the generator makes, or
BLOCK_BYTES = 1 << 25  # as many as have about this many bytes: a block is in memory several times over


def blocks(keys, value_bytes):
    width = 2 * value_bytes
    step = max(1, min(BLOCK_KEYS, BLOCK_BYTES // max(1, value_bytes)))
    for first in range(0, keys, step):
        count = min(step, keys - first)
        stream = hashlib.shake_256(f"blindfuse/synthetic/0/{value_bytes}/{first}".encode())
        values = stream.hexdigest(count * value_bytes)
        yield "".join(
            [f"key-{first + i}\t{values[i * width:(i + 1) * width]}\n" for i in range(count)]).encode()


def main():
    parser = tsv.parser(__doc__)
    parser.add_argument("--keys", type=tsv.natural, required=True, metavar="N")
    parser.add_argument("--value-bytes", type=tsv.natural, default=16, metavar="B",
                        help="bytes of a value, before hex (default: %(default)s)")
    arguments = parser.parse_args()
    tsv.write_blocks(blocks(arguments.keys, arguments.value_bytes))


if __name__ == "__main__":
    main()
