"""What a server chooses: binary fuse filters. PROTOCOL.md, sections 4 and 5."""

import math
import struct

import plain_scheme as scheme

from .inputs import U64, stream


def unmix64(x):
    """The inverse of mix64, to reach the edges of the row range on purpose."""
    x ^= x >> 33
    x = (x * pow(0xC4CEB9FE1A85EC53, -1, 1 << 64)) & U64
    x ^= x >> 33
    x = (x * pow(0xFF51AFD7ED558CCD, -1, 1 << 64)) & U64
    return x ^ (x >> 33)


def fuse_shape(key_count, arity):
    """Segment length, capacity and row count for this many keys in one shard."""
    log_m, factor_log = math.log(key_count), math.log(max(key_count, 2))
    if arity == 3:
        exponent = log_m / math.log(3.33) + 2.25
        factor = max(1.125, 0.875 + 0.25 * max(1.0, math.log(1e6) / factor_log))
    else:
        exponent = log_m / math.log(2.91) - 0.5
        factor = max(1.075, 0.77 + 0.305 * max(1.0, math.log(6e5) / factor_log))
    # Vectors that hang on the last bit of a logarithm would test the C library, not the rule.
    assert abs(exponent - round(exponent)) > 1e-6
    # (100 keys, arity 3: the ratio is 3, the product 162.5, both in theory and in doubles.)
    assert abs(key_count * factor % 1.0 - 0.5) > 1e-6 or key_count * factor == 162.5
    length = min(max(2 ** math.floor(exponent), 64), 1 << 18)
    capacity = math.floor(key_count * factor + 0.5)
    return length, capacity, length * max(-(-capacity // length), arity)


def build_filter(entries, row_count, record_bytes):
    """Peels the graph of `entries` (rows, record) and fills the matrix, a list of R records; None
    when the graph does not peel. The order is fixed: the lowest row of degree one goes first."""
    at_row = [set() for _ in range(row_count)]
    for index, (rows, _) in enumerate(entries):
        for row in rows:
            at_row[row].add(index)
    peeled = []
    while True:
        row = next((r for r in range(row_count) if len(at_row[r]) == 1), None)
        if row is None:
            break
        (index,) = at_row[row]
        for other in entries[index][0]:
            at_row[other].discard(index)
        peeled.append((index, row))
    if len(peeled) != len(entries):
        return None
    matrix = [bytes(record_bytes) for _ in range(row_count)]
    for index, row in reversed(peeled):
        rows, record = entries[index]
        others = [matrix[r] for r in rows if r != row]
        matrix[row] = bytes((record[c] - sum(o[c] for o in others)) % 256
                            for c in range(record_bytes))
    return matrix


def check_arity_4():
    """The database files are of arity 3 and 1: that arity 4 peels is only asserted here."""
    length, _, row_count = fuse_shape(300, 4)
    for attempt in range(20):
        entries = [(scheme.rows_of(x1, attempt, 4, row_count, length), stream(f"vectors/4/{x1}", 3))
                   for x1 in struct.unpack("<300Q", stream("vectors/arity-4", 2400))]
        matrix = build_filter(entries, row_count, 3)
        if matrix is not None:
            for rows, record in entries:
                assert record == bytes(sum(matrix[r][c] for r in rows) % 256 for c in range(3))
            return
    raise AssertionError("no filter of arity 4")
