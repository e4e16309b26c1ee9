"""Inputs that everybody can compute again, and how the files write numbers."""

import struct

import numpy
import plain_scheme as scheme
from plain_scheme import sha256

U32 = (1 << 32) - 1
U64 = (1 << 64) - 1

STREAM_RULE = ("bytes of a label: SHA-256(label || u64(0)) || SHA-256(label || u64(1)) || ...; "
               "ternary numbers of a label: its bytes in order, without those equal to 255, each "
               "byte mod 3, minus 1")


def stream(label, count):
    out, i = b"", 0
    while len(out) < count:
        out += sha256(label.encode(), struct.pack("<Q", i))
        i += 1
    return out[:count]


def stream_words(label, count):
    return list(struct.unpack(f"<{count}I", stream(label, 4 * count)))


def ternary(label, count):
    return scheme.ternary(stream(label, 2 * count + 64), count)


def signs(words):
    return "".join("-0+"[x + 1] for x in scheme.signed(words))


def int64(x):
    return f"0x{x:016x}"


def u64(data):
    return int.from_bytes(data[:8], "little")


def array(words):
    return numpy.array(words, dtype=numpy.uint32)


def words_to_bytes(words):
    return numpy.asarray(words).astype("<u4").tobytes()


def words_of(values):
    """The ends of many words, and their hash."""
    return {"first": values[:4].tolist(), "last": values[-2:].tolist(),
            "sha256": sha256(words_to_bytes(values)).hex()}
