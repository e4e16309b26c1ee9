"""What both modes of plain_client.py need: ChaCha20, rounded words and how they are packed, ternary numbers.
Numbers in brackets are sections of docs/PROTOCOL.md."""

from __future__ import annotations

import os

import numpy


class Refused(Exception):
    """What the server sent is not what the protocol says."""


def require(condition: bool, what: str) -> None:
    if not condition:
        raise Refused(what)


# ---- ChaCha20 [6, 15]


def quarter_rounds(a: numpy.ndarray, b: numpy.ndarray, c: numpy.ndarray, d: numpy.ndarray) -> None:
    """Four at once of every block: each operand is a row of the state (RFC 8439, section 2.1)."""
    for x, y, z, bits in (a, b, d, 16), (c, d, b, 12), (a, b, d, 8), (c, d, b, 7):
        x += y
        z ^= x
        z[:] = z << numpy.uint32(bits) | z >> numpy.uint32(32 - bits)


def chacha20(key: bytes, nonce: bytes, block_count: int, first_block: int = 0) -> numpy.ndarray:
    """The words of the keystream (RFC 8439, section 2.3), all blocks side by side."""
    start = numpy.empty((4, 4, block_count), dtype=numpy.uint32)
    words = numpy.frombuffer(b"expand 32-byte k" + key + bytes(4) + nonce, dtype="<u4")
    start[:] = words.reshape(4, 4, 1)
    start[3, 0] = numpy.arange(first_block, first_block + block_count, dtype=numpy.uint32)
    a, b, c, d = start.copy()
    for _ in range(10):
        quarter_rounds(a, b, c, d)
        b, c, d = (numpy.roll(row, -i, axis=0) for i, row in enumerate((b, c, d), start=1))
        quarter_rounds(a, b, c, d)
        b, c, d = (numpy.roll(row, i, axis=0) for i, row in enumerate((b, c, d), start=1))
    return (numpy.stack((a, b, c, d)) + start).reshape(16, block_count).T.reshape(-1)


# ---- Rounded words [7]


def packed_bytes(count: int, bits: int) -> int:
    return (count * bits + 7) // 8


def round_words(words: numpy.ndarray, bits: int) -> numpy.ndarray:
    k = 32 - bits
    if k == 0:
        return words.copy()
    wide = words.astype(numpy.uint64)
    number, rest, half = wide >> numpy.uint64(k), wide % numpy.uint64(1 << k), 1 << (k - 1)
    number += (rest > half) | ((rest == half) & (number % numpy.uint64(2) == 1))
    return (number % numpy.uint64(1 << bits)).astype(numpy.uint32)


def restore(numbers: numpy.ndarray, bits: int) -> numpy.ndarray:
    return numbers << numpy.uint32(32 - bits)


def pack(numbers: numpy.ndarray, bits: int) -> bytes:
    all_bits = numpy.unpackbits(numbers.astype("<u4").view(numpy.uint8).reshape(-1, 4), axis=1, bitorder="little")
    return numpy.packbits(all_bits[:, :bits], bitorder="little").tobytes()


def unpack(data: bytes, count: int, bits: int) -> numpy.ndarray:
    require(len(data) == packed_bytes(count, bits), "packed numbers have another size")
    all_bits = numpy.unpackbits(numpy.frombuffer(data, dtype=numpy.uint8), bitorder="little")
    require(not all_bits[count * bits:].any(), "unused bits are set")
    padded = numpy.zeros((count, 32), dtype=numpy.uint8)
    padded[:, :bits] = all_bits[:count * bits].reshape(count, bits)
    return numpy.packbits(padded, axis=1, bitorder="little").reshape(-1).view("<u4").astype(numpy.uint32)


# ---- Secrets and errors [9, 17]


def ternary(count: int) -> numpy.ndarray:
    """Numbers that are uniform in -1, 0, 1, as words: bytes below 255 modulo 3, from the system's random source."""
    trits = numpy.zeros(0, dtype=numpy.uint8)
    while len(trits) < count:
        drawn = numpy.frombuffer(os.urandom(count + count // 64 + 64), dtype=numpy.uint8)
        trits = numpy.concatenate((trits, drawn[drawn < 255] % 3))
    return trits[:count].astype(numpy.uint32) - numpy.uint32(1)
