"""Packed responses, for plain_client.py, written from docs/PROTOCOL.md alone. Polynomials are multiplied and evaluated
by their definitions, as tables: with 2048 coefficients that is fast enough.
Numbers in brackets are sections of docs/PROTOCOL.md."""

from __future__ import annotations

import functools
import struct
from types import SimpleNamespace
from typing import Sequence

import numpy

from plain_words import chacha20, pack, round_words, ternary, unpack

DIMENSION = 2048
ORDER = 2 * DIMENSION
Q = 4_294_955_009
ROOT = 3_199_275_160


# ---- The ring [14]


def points() -> list[int]:
    """[14], in their order."""
    powers = [pow(5, k, ORDER) for k in range(DIMENSION // 2)]
    return [pow(ROOT, g % ORDER, Q) for g in powers + [-power for power in powers]]


@functools.cache
def powers_of_points() -> numpy.ndarray:
    """Point k to the power i, for every k and i."""
    z = numpy.array(points(), dtype=numpy.uint64)
    powers = numpy.ones((DIMENSION, DIMENSION), dtype=numpy.uint64)  # by exponents, then turned
    for i in range(1, DIMENSION):
        powers[i] = powers[i - 1] * z % Q
    return numpy.ascontiguousarray(powers.T.astype(numpy.int64))


def at_points(small: numpy.ndarray) -> numpy.ndarray:
    """Values of a polynomial of small coefficients, such as -1, 0 and 1: the sums below stay below 2^63."""
    assert abs(small).max(initial=0) < 2**16
    return powers_of_points() @ small.astype(numpy.int64) % Q


def with_power(f: numpy.ndarray, g: int) -> numpy.ndarray:
    """f(X^g)."""
    exponents = numpy.arange(DIMENSION) * g % ORDER
    moved = numpy.empty_like(f)
    moved[exponents % DIMENSION] = numpy.where(exponents < DIMENSION, f, -f)
    return moved


def times(f: numpy.ndarray) -> numpy.ndarray:
    """The matrix that multiplies coefficients with f, modulo X^2048 + 1: in column j stands X^j f."""
    windows = numpy.lib.stride_tricks.sliding_window_view(numpy.concatenate((-f, f)), DIMENSION)
    return windows[1:, ::-1]  # in row i and column j: number i - j of f, or less number 2048 + i - j


def multiply(a: numpy.ndarray, b: numpy.ndarray) -> numpy.ndarray:
    """Of numbers modulo Q, one by one."""
    return (a.astype(numpy.uint64) * b.astype(numpy.uint64) % Q).astype(numpy.int64)


def raised(t: numpy.ndarray, bits: int) -> numpy.ndarray:
    scaled = t.astype(numpy.uint64) * numpy.uint64(Q) + numpy.uint64(1 << bits - 1)
    return (scaled >> numpy.uint64(bits)).astype(numpy.int64)


def nearest_bytes(phase: numpy.ndarray) -> bytes:
    return ((256 * phase + Q // 2) // Q % 256).astype(numpy.uint8).tobytes()  # no halves: Q is odd


# ---- Queries and responses [15 to 18]

PACKING_KEYS = [(g, k) for g in (5, -1) for k in (0, 1, 2)]


def public_block(seed: bytes, j: int) -> numpy.ndarray:
    return chacha20(seed, struct.pack("<IQ", 0, j), 2048 // 16)


def key_mask(seed: bytes, g: int, k: int) -> numpy.ndarray:
    words = chacha20(seed, struct.pack("<IQ", 0, 2**63 + (0 if g == 5 else 3) + k), 2048 // 16 + 8)
    return words[words < Q][:2048]


def signed(words: numpy.ndarray) -> numpy.ndarray:
    return words.view(numpy.int32).astype(numpy.int64)


def packed_query_words(blocks: numpy.ndarray, s: numpy.ndarray, e: numpy.ndarray, rows: Sequence[int]) -> numpy.ndarray:
    """b, for R / 2048 blocks."""
    b = numpy.matmul(blocks, times(s).T).reshape(-1) + e
    b[list(rows)] += numpy.uint32(1 << 24)
    return b


def packing_keys(seed: bytes, s: numpy.ndarray, errors: Sequence[numpy.ndarray]) -> bytes:
    """errors: one for each of PACKING_KEYS."""
    values, keys = at_points(signed(s)), b""
    for (g, k), e in zip(PACKING_KEYS, errors, strict=True):
        masked = multiply(values, key_mask(seed, g, k))
        y = at_points(signed(e)) - masked + 2**(8 + 8 * k) * at_points(with_power(signed(s), g))
        keys += (y % Q).astype("<u4").tobytes()
    return keys


class PackedMode:
    """[15 to 18] As HintMode; masks: of all packs."""

    def __init__(self, m: SimpleNamespace, masks: Sequence[bytes]):
        self.m, self.seed = m, bytes.fromhex(m.seed)
        self.masks = [raised(unpack(mask, 2048, m.hint_bits), m.hint_bits) for mask in masks]
        self.blocks = numpy.stack([public_block(self.seed, j) for j in range(m.row_count // 2048)])

    def query(self, rows: Sequence[int]) -> tuple[numpy.ndarray, bytes]:
        s, e = ternary(2048), ternary(self.m.row_count)
        return s, self.encrypt(s, e, [ternary(2048) for _ in PACKING_KEYS], rows)

    def encrypt(self, s: numpy.ndarray, e: numpy.ndarray, key_errors: Sequence[numpy.ndarray],
                rows: Sequence[int]) -> bytes:
        numbers = round_words(packed_query_words(self.blocks, s, e, rows), self.m.query_bits)
        return pack(numbers, self.m.query_bits) + packing_keys(self.seed, s, key_errors)

    def record(self, s: numpy.ndarray, shard: int, answer: bytes) -> bytes:
        return nearest_bytes(self.phases(s, shard, answer))

    def phases(self, s: numpy.ndarray, shard: int, answer: bytes) -> numpy.ndarray:
        bodies = raised(unpack(answer, self.m.column_count, self.m.response_bits), self.m.response_bits)
        columns = numpy.arange(shard * self.m.record_bytes, (shard + 1) * self.m.record_bytes)
        found = bodies[columns]
        for pack_number in range(columns[0] // 2048, columns[-1] // 2048 + 1):
            product = times(signed(s)) @ self.masks[pack_number] % Q
            own = columns // 2048 == pack_number
            found[own] -= product[columns[own] % 2048]
        return found % Q
