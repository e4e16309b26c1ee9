"""Hashes, rows and records of keys."""

import struct
from types import SimpleNamespace

import plain_scheme as scheme
from plain_scheme import key_hash, mix64, mulhi

from .filters import fuse_shape, unmix64
from .inputs import U64, int64, stream


def key_hash_file():
    keys = [("empty", b""), ("ascii", b"apple"), ("ascii with space", b"hello, world"),
            ("utf-8", "Zürich – 東京 🍏".encode()), ("one zero byte", b"\0"),
            ("zero bytes", b"a\0b\0\0"), ("high bytes", bytes(range(256)))]
    cases = []
    for salt in (bytes(16), bytes(range(16)), stream("vectors/salt", 16)):
        for name, key in keys + [("longest", None)]:
            if key is None:
                key, given = b"\x00\x01z\xff" * 16384, {"repeat": "00017aff", "times": 16384}
                assert len(key) == 65536
            else:
                given = {"bytes": key.hex()}
            h, x0, x1 = key_hash(salt, key)
            cases.append({
                "name": name, "salt": salt.hex(), "key": given, "h": h.hex(), "x0": int64(x0),
                "x1": int64(x1), "digest": {str(d): h[16:16 + d].hex() for d in (1, 8, 16)},
                "shard": {str(s): mulhi(x0, s) for s in (1, 2, 3, 16, 1000, 65536)}})
    return {"about": "Section 4: key to h, x0, x1, digest (by digest_bytes), shard (by S). A key "
                     "is given as bytes, or as bytes to repeat.", "cases": cases}


def fuse_slots_file():
    inputs = [0, 1, 2, 1 << 32, 1 << 33, 1 << 63, U64, 0x0123456789ABCDEF]
    inputs += struct.unpack("<8Q", stream("vectors/mix64", 64))
    assert all(unmix64(mix64(x)) == x for x in inputs)
    rows = []
    for arity, row_count, length in (
            (3, 192, 64), (3, 320, 64), (3, 4096, 256), (3, 1179648, 8192), (3, 1 << 31, 1 << 18),
            (4, 256, 64), (4, 448, 64), (4, 5120, 512), (4, 1 << 20, 1 << 18),
            (4, 1 << 31, 1 << 18)):
        for number in range(4):
            seed = (0, U64, *struct.unpack("<2Q", stream("vectors/seeds", 16)))[number]
            x1s = list(struct.unpack("<3Q", stream(f"vectors/x1/{arity}/{number}", 24)))
            # a = 0 and a = 2^64 - 1 are the first and the last possible first row.
            x1s += [0, U64, (unmix64(0) - seed) & U64, (unmix64(U64) - seed) & U64]
            for x1 in x1s:
                r = scheme.rows_of(x1, seed, arity, row_count, length)
                first = r[0] // length
                assert [x // length for x in r] == list(range(first, first + arity))
                assert r[-1] < row_count
                rows.append({"arity": arity, "row_count": row_count, "segment_length": length,
                             "seed": int64(seed), "x1": int64(x1), "rows": r})
    shapes = []
    for arity in (3, 4):
        for m in (1, 2, 3, 10, 50, 91, 100, 1000, 1024, 4600, 10**4, 65536, 10**5, 147306, 200000,
                  1 << 18, 10**6, 1 << 20, 10**7):
            length, capacity, row_count = fuse_shape(m, arity)
            shapes.append({"arity": arity, "key_count": m, "segment_length": length,
                           "capacity": capacity, "row_count": row_count})
    return {"about": "Section 4: mix64, rows of a slot hash x1. shapes: segment length, capacity "
                     "and row count that a planner takes for key_count keys in the fullest shard.",
            "mix64": [{"in": int64(x), "out": int64(mix64(x))} for x in inputs],
            "rows": rows, "shapes": shapes}


def record_file():
    digest = stream("vectors/digest", 16)
    formats = []
    for d, l, v, sizes in (
            (8, 1, 12, (0, 1, 11, 12)), (4, 0, 6, (6,)), (16, 2, 300, (0, 255, 256, 300)),
            (8, 4, 5, (0, 5)), (1, 1, 0, (0,)), (8, 0, 0, (0,)), (0, 1, 8, (0, 3, 8)),
            (0, 0, 7, (7,)), (3, 1, 255, (254, 255))):
        good, bad = [], []
        sizes_of = SimpleNamespace(digest_bytes=d, length_bytes=l, value_bytes=v)

        def refuse(why, record):
            assert len(record) == d + l + v and scheme.read_record(sizes_of, record, digest[:d]) is None
            bad.append({"reason": why, "record": record.hex()})

        for size in sizes:
            value = stream(f"vectors/value/{size}", size)
            record = scheme.make_record(sizes_of, value, digest[:d])
            assert scheme.read_record(sizes_of, record, digest[:d]) == value
            good.append({"value": value.hex(), "record": record.hex()})
            if d:
                refuse("digest differs in its last bit",
                       record[:d - 1] + bytes([record[d - 1] ^ 128]) + record[d:])
                refuse("digest differs in its first bit", bytes([record[0] ^ 1]) + record[1:])
            if size < v:
                refuse("last padding byte is not zero", record[:-1] + b"\x01")
                at = d + l + size
                refuse("first padding byte is not zero", record[:at] + b"\x80" + record[at + 1:])
        if l:
            for length in {v + 1, 256 ** l - 1}:
                if v < length < 256 ** l:
                    refuse(f"length {length} exceeds value_bytes",
                           digest[:d] + length.to_bytes(l, "little") + bytes(v))
        formats.append({"digest_bytes": d, "length_bytes": l, "value_bytes": v,
                        "record_bytes": d + l + v, "digest": digest[:d].hex(), "good": good,
                        "bad": bad})
    return {"about": "Section 5: records. Reading a good record under `digest` gives value; "
                     "reading a bad one gives \"not there\".", "formats": formats}
