#!/usr/bin/env python3
"""Writes the test vectors of docs/PROTOCOL.md, by the scheme in plain Python, which is independent of the product:
tests/protocol/plain_scheme.py. Here are inputs, what can be wrong with them, and what a server does.

    generate.py            writes the *.json files next to this script
    generate.py --check    fails when the files on disk differ from what it would write

In the JSON files, text that starts with 0x is one integer; other hexadecimal text is bytes, in
order.
"""

import json
import math
import struct
import sys
from pathlib import Path
from types import SimpleNamespace

FOLDER = Path(__file__).resolve().parent
sys.path.insert(0, str(FOLDER.parent / "protocol"))
import plain_numpy  # noqa: E402, F401
import numpy  # noqa: E402
import plain_ed25519  # noqa: E402
import plain_packing as packing  # noqa: E402
import plain_scheme as scheme  # noqa: E402
from plain_scheme import DIGITS, N, PACK, Q  # noqa: E402
from plain_scheme import key_hash, mix64, mulhi, pack, restore, round_words, sha256, unpack  # noqa: E402

U32 = (1 << 32) - 1
U64 = (1 << 64) - 1


def u64(data):
    return int.from_bytes(data[:8], "little")


def array(words):
    return numpy.array(words, dtype=numpy.uint32)


def words_to_bytes(words):
    return numpy.asarray(words).astype("<u4").tobytes()


def check_chacha20():
    """RFC 8439."""
    key = bytes(range(32))
    block = scheme.chacha20(key, bytes.fromhex("000000090000004a00000000"), 1, 1)  # section 2.3.2
    assert words_to_bytes(block).hex() == (
        "10f1e7e4d13b5915500fdd1fa32071c4c7d1f4c733c068030422aa9ac3d46c4e"
        "d2826446079faa0914c2d705d98b02a2b5129cd1de164eb9cbd083e8a2503c4e")
    text = (b"Ladies and Gentlemen of the class of '99: If I could offer you only one tip for the "
            b"future, sunscreen would be it.")  # section 2.4.2
    stream = words_to_bytes(scheme.chacha20(key, bytes.fromhex("000000000000004a00000000"), 2, 1))
    assert bytes(a ^ b for a, b in zip(text, stream)).hex() == (
        "6e2e359a2568f98041ba0728dd0d6981e97e7aec1d4360c20a27afccfd9fae0b"
        "f91b65c5524733ab8f593dabcd62b3571639d624e65152ab8f530c359f0861d8"
        "07ca0dbf500d6a6156a38e088a22b65e52bc514d16ccf806818ce91ab7793736"
        "5af90bbf74a35be6b40b8eedf2785e42874d")


# --- Sections 4 and 5: what a server chooses -----------------------------------------------------


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


def rounded_bytes(words, bits):
    data = pack(round_words(words, bits), bits)
    assert (restore(unpack(data, len(words), bits), bits) == restored(words, bits)).all()
    return data


def restored(words, bits):
    """What the receiver of rounded words sees."""
    return restore(round_words(words, bits), bits)


# --- Sections 2 and 3: manifest and table -------------------------------------------------------


def with_epoch(manifest):
    return {"epoch": scheme.epoch_id(manifest)} | manifest


def is_valid(text):
    """Whether a client accepts this manifest."""
    try:
        scheme.read_manifest(text.encode())
    except scheme.Refused:
        return False
    return True


def derived(manifest):
    """hint_bytes: the hint of one shard, or the mask of one pack."""
    m = scheme.read_manifest(json.dumps(manifest).encode())
    packs = ["pack_count"] if m.mode == "packed" else []
    groups = ["group_count", "group_columns", "group_pack_count"] if m.two_levels else []
    names = ["dimension", "record_bytes", "column_count", *packs, *groups, "query_bytes", "response_bytes",
             "hint_bytes"]
    return {name: getattr(m, name) for name in names}


# --- Deterministic inputs -----------------------------------------------------------------------

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


# --- The files ----------------------------------------------------------------------------------


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


def public_matrix_file():
    seed = stream("vectors/matrix-seed", 32)
    cases = []
    for panel in (0, 1, 63, (1 << 25) - 1):
        for name, n in scheme.DIMENSIONS["hint"].items():
            words = scheme.public_panel(seed, n, panel).reshape(-1)
            cases.append({"lwe": name, "dimension": n, "panel": panel, "first_words": words[:16].tolist(),
                          "last_words": words[-16:].tolist(), "sha256": sha256(words_to_bytes(words)).hex()})
    return {"about": "Section 6: panels of the public matrix; sha256 is over all n * 256 bytes.",
            "seed": seed.hex(), "panels": cases}


def bit_packing_file():
    cases, bad = [], []
    for bits in range(1, 33):
        unit = 1 << (32 - bits)
        words = [0, 1, U32, U32 - 1, 1 << 31, (1 << 31) - 1, (1 << 31) + 1]
        if bits < 32:
            half = unit // 2
            # Ties above even (down), above odd (up), at the top (wraps to 0), and their neighbours.
            words += [half, 3 * half, 5 * half, 7 * half, half - 1, half + 1, 3 * half - 1,
                      3 * half + 1, (1 << 32) - half, (1 << 32) - half - 1, (1 << 32) - 3 * half]
        words = [x & U32 for x in words] + stream_words(f"vectors/packing/{bits}", 8)
        words = words[:len(words) // 2 * 2 - 1]  # an odd count leaves unused bits where it can
        numbers = round_words(array(words), bits)
        data = pack(numbers, bits)
        assert (unpack(data, len(words), bits) == numbers).all()
        cases.append({"bits": bits, "words": words, "numbers": numbers.tolist(), "packed": data.hex(),
                      "restored": restore(numbers, bits).tolist()})
        wrong = [("one byte too few", data[:-1]), ("one byte too many", data + b"\0")]
        used = len(words) * bits % 8
        if used:
            wrong.append(("highest unused bit is set", data[:-1] + bytes([data[-1] | 128])))
            wrong.append(("lowest unused bit is set", data[:-1] + bytes([data[-1] | 1 << used])))
        for why, packed in wrong:
            bad.append({"reason": why, "bits": bits, "count": len(words), "packed": packed.hex()})
    return {"about": "Section 7: words, rounded to numbers, packed, restored; bad holds packed "
                     "bytes that a reader of `count` numbers refuses.", "cases": cases, "bad": bad}


def manifest_base(**members):
    mode = members.get("mode", "hint")
    several = scheme.SEVERAL_KEYS_FORMAT if "keys_per_request" in members else scheme.FORMATS[mode]
    return {"format": several, "mode": mode} | members | {
        "salt": stream("vectors/manifest-salt", 16).hex(),
        "seed": stream("vectors/manifest-seed", 32).hex(),
        "table": stream("vectors/manifest-table", 32).hex(),
        "samples": stream("vectors/manifest-samples", 32).hex()}


def good_manifests():
    length3, _, rows3 = fuse_shape(190000, 3)
    length4, _, rows4 = fuse_shape(10**6, 4)
    good = {
        "keyword-3": manifest_base(
            kind="keyword", lwe="lwe-1774", key_count=3000000, shard_count=16, row_count=rows3,
            arity=3, segment_length=length3, digest_bytes=8, length_bytes=2, value_bytes=1000,
            query_bits=28, response_bits=10, hint_bits=18, failure_log2=-256),
        "keyword-4": manifest_base(
            kind="keyword", lwe="lwe-1572", key_count=1 << 32, shard_count=4321, row_count=rows4,
            arity=4, segment_length=length4, digest_bytes=16, length_bytes=0, value_bytes=33,
            query_bits=28, response_bits=11, hint_bits=19, failure_log2=-91),
        "index": manifest_base(
            kind="index", lwe="lwe-1288", key_count=1000000, shard_count=1000, row_count=1024,
            arity=1, segment_length=0, digest_bytes=0, length_bytes=4, value_bytes=131072,
            query_bits=32, response_bits=9, hint_bits=17, failure_log2=-146),
        "packed-keyword": manifest_base(
            mode="packed", kind="keyword", lwe="ring-2048", key_count=80000, shard_count=8,
            row_count=12288, arity=3, segment_length=512, digest_bytes=8, length_bytes=2,
            value_bytes=1000, query_bits=28, response_bits=10, hint_bits=18, failure_log2=-405, levels=1),
        "packed-index": manifest_base(
            mode="packed", kind="index", lwe="ring-2048", key_count=1000000, shard_count=100,
            row_count=10240, arity=1, segment_length=0, digest_bytes=0, length_bytes=0,
            value_bytes=32, query_bits=32, response_bits=9, hint_bits=17, failure_log2=-75, levels=1),
        # 14 groups of 900 columns, of which the last has one shard.
        "two-levels": manifest_base(
            mode="packed", kind="keyword", lwe="ring-2048", key_count=400000, shard_count=40,
            row_count=12288, arity=3, segment_length=512, digest_bytes=8, length_bytes=2,
            value_bytes=290, query_bits=28, response_bits=10, hint_bits=18, failure_log2=-43, levels=2,
            shards_a_group=3, query2_bits=25, mask2_bits=19, response2_bits=13, short_key_order=0),
        # 64 columns, as many as the short key packs.
        "short-key": manifest_base(
            mode="packed", kind="index", lwe="ring-2048", key_count=1000000, shard_count=100,
            row_count=10240, arity=1, segment_length=0, digest_bytes=0, length_bytes=0,
            value_bytes=32, query_bits=32, response_bits=9, hint_bits=17, failure_log2=-62, levels=2,
            shards_a_group=2, query2_bits=24, mask2_bits=17, response2_bits=12, short_key_order=64)}
    # Requests for several keys: with the usual number of buckets, the fewest, the most, and words that are not rounded.
    for name, members in {
            "batch": {"shard_count": 288, "row_count": 14336, "keys_per_request": 64, "bucket_count": 96,
                      "failure_log2": -63},
            "batch-least": {"shard_count": 3, "row_count": 2048, "keys_per_request": 2, "bucket_count": 3,
                            "key_count": 1500, "failure_log2": -248},
            "batch-most": {"shard_count": 61440, "row_count": 16384, "keys_per_request": 1024, "bucket_count": 4096,
                           "key_count": 250000000, "failure_log2": -55},
            "batch-words": {"shard_count": 12, "row_count": 1 << 22, "query_bits": 32, "keys_per_request": 2,
                            "bucket_count": 4, "key_count": 14000000, "failure_log2": -248}}.items():
        good[name] = manifest_base(**{
            "mode": "packed", "kind": "keyword", "lwe": "ring-2048", "key_count": 1 << 20, "arity": 3,
            "segment_length": 512, "digest_bytes": 8, "length_bytes": 0, "value_bytes": 1024, "query_bits": 25,
            "response_bits": 10, "hint_bits": 18, "levels": 1} | members)
    # Members that a client does not know: ignored, but part of the epoch id.
    good["unknown-members"] = good["index"] | {"a_later_member": "two", "z_later_member": -7}
    good["unknown-levels"] = good["index"] | {"levels": 2}
    good["unknown-groups"] = good["packed-index"] | {"shards_a_group": 0, "query2_bits": "two"}
    return {name: with_epoch(m) for name, m in good.items()}


def manifest_file():
    length3, _, rows3 = fuse_shape(190000, 3)
    good = good_manifests()
    valid = [{"name": name, "text": json.dumps(m), "canonical": scheme.epoch_text(m), "manifest": m,
              "derived": derived(m)} for name, m in good.items()]

    assert all(is_valid(case["text"]) for case in valid)

    def changed(base, **members):
        return with_epoch({k: v for k, v in (good[base] | members).items() if k != "epoch"})

    invalid, cross = [], []

    def refuse(base, change, reason, manifest, into=invalid):
        text = manifest if isinstance(manifest, str) else json.dumps(manifest)
        assert not is_valid(text), (change, reason)
        into.append({"base": base, "change": change, "reason": reason, "text": text})

    def refuse_value(base, name, value, reason, into=invalid):
        refuse(base, f"{name} = {json.dumps(value)}, new epoch", reason,
               changed(base, **{name: value}), into)

    kw = "keyword-3"
    whole = good[kw]
    checked = [name for name in whole if name != "samples"]  # which clients ignore
    for name in checked:
        without = {k: v for k, v in whole.items() if k != name}
        refuse(kw, f"without {name}" + ("" if name == "epoch" else ", new epoch"), "member missing",
               without if name == "epoch" else with_epoch(
                   {k: v for k, v in without.items() if k != "epoch"}))
    for name in checked:
        if name != "epoch":
            value = whole[name]
            refuse_value(kw, name, str(value) if isinstance(value, int) else 1, "wrong type")
    refuse_value(kw, "row_count", None, "wrong type")
    refuse_value(kw, "arity", True, "wrong type")
    refuse_value(kw, "value_bytes", 1000.5, "not an integer")
    flipped = ("1" if whole["epoch"][0] == "0" else "0") + whole["epoch"][1:]
    refuse(kw, "first digit of epoch changed", "epoch differs", whole | {"epoch": flipped})
    refuse(kw, "value_bytes = 1001, old epoch", "epoch differs", whole | {"value_bytes": 1001})
    refuse(kw, "seed changed, old epoch", "epoch differs", whole | {"seed": "0" * 64})
    refuse(kw, "unknown member added, old epoch", "epoch differs", whole | {"another": 1})
    refuse(kw, "epoch in upper case", "not lower case", whole | {"epoch": whole["epoch"].upper()})
    refuse(kw, "epoch one digit short", "wrong length", whole | {"epoch": whole["epoch"][:-1]})
    for name in ("salt", "seed", "table"):
        refuse_value(kw, name, whole[name].upper(), "not lower case")
        refuse_value(kw, name, whole[name][:-2], "wrong length")
        refuse_value(kw, name, whole[name] + "00", "wrong length")
        refuse_value(kw, name, "g" + whole[name][1:], "not hexadecimal")
    for name, value in (("format", "blindfuse/4"), ("format", ""), ("mode", "Packed"),
                        ("mode", ""), ("kind", "Keyword"), ("kind", "list"), ("lwe", "lwe-1024"),
                        ("lwe", "1774")):
        refuse_value(kw, name, value, "unknown value")
    for base, value in ((kw, "blindfuse/2"), ("index", "blindfuse/2"), ("packed-keyword", "blindfuse/1"),
                        (kw, "blindfuse/3"), ("batch", "blindfuse/1")):
        refuse_value(base, "format", value, "the format of the other mode")
    for base, value in (("packed-keyword", "blindfuse/3"), ("two-levels", "blindfuse/3"), ("batch", "blindfuse/2")):
        refuse_value(base, "format", value, "the format of requests for several keys, and none, or the reverse")
    for base, name, value in ((kw, "mode", "packed"), ("packed-keyword", "mode", "hint"),
                              ("packed-index", "lwe", "lwe-1774")):
        refuse_value(base, name, value, "a parameter set of the other mode")
    for base, value in (("packed-keyword", 12288 + 512), ("packed-index", 10240 + 64),
                        ("packed-index", 12800)):
        refuse_value(base, "row_count", value, "no multiple of 2048 where responses are packed")
    for base, value in (("packed-keyword", 0), ("packed-index", (1 << 24) + 2048)):
        refuse_value(base, "row_count", value, "out of range where responses are packed")
    for name, values in {
            "key_count": (0, -1, (1 << 32) + 1), "shard_count": (0, 65537, (1 << 32) + 16),
            "row_count": (0, rows3 + 32, (1 << 31) + length3, (1 << 32) + rows3, -rows3),
            "arity": (0, 1, 2, 5, (1 << 32) + 3), "segment_length": (0, 32, 96, 1 << 19),
            "digest_bytes": (0, 17, 264, -8), "length_bytes": (3, 5, 8, -1),
            "value_bytes": (-1, 131073), "query_bits": (23, 33, 0), "response_bits": (8, 33, -10),
            "hint_bits": (15, 33), "failure_log2": (-39, 0, 40, (1 << 64) - 58)}.items():
        for value in values:
            refuse_value(kw, name, value, "out of range")
    two = good["two-levels"]
    refuse("packed-index", "without levels, new epoch", "member missing", with_epoch(
        {k: v for k, v in good["packed-index"].items() if k not in ("levels", "epoch")}))
    for name, values in {
            "levels": (0, 3, -1, (1 << 32) + 2), "shards_a_group": (0, 41, -3, (1 << 32) + 3),
            "query2_bits": (15, 33, -25, (1 << 32) + 25), "mask2_bits": (15, 33, -19, (1 << 32) + 19),
            "response2_bits": (0, 9, 10, 33, -13, (1 << 32) + 13),
            "short_key_order": (-1, 1, 3, 96, 513, 1000, 1024, 2048, (1 << 32) + 512)}.items():
        if name != "levels":
            refuse("two-levels", f"without {name}, new epoch", "member missing",
                   with_epoch({k: v for k, v in two.items() if k not in (name, "epoch")}))
        refuse_value("two-levels", name, str(two[name]), "wrong type")
        for value in values:
            refuse_value("two-levels", name, value, "out of range")
    batch = good["batch"]
    for name, values in {"keys_per_request": (0, 1, 1025, -64, (1 << 32) + 64),
                         "bucket_count": (0, 2, 4097, -96, (1 << 32) + 96)}.items():
        refuse("batch", f"without {name}, new epoch", "member missing",
               with_epoch({k: v for k, v in batch.items() if k not in (name, "epoch")}))
        refuse_value("batch", name, str(batch[name]), "wrong type")
        for value in values:
            refuse_value("batch", name, value, "out of range")
    assert rows3 % (2 * length3) == 0
    refuse(kw, f"segment_length = {2 * length3}, row_count = {rows3 + length3}, new epoch",
           "segment_length does not divide row_count",
           changed(kw, segment_length=2 * length3, row_count=rows3 + length3))
    for name, value in (("arity", 3), ("segment_length", 64), ("digest_bytes", 8)):
        refuse_value("index", name, value, "not allowed for an index")
    refuse_value("keyword-4", "kind", "index",
                 "arity, segment_length and digest_bytes of a keyword")
    refuse_value("index", "kind", "keyword", "arity, segment_length and digest_bytes of an index")
    for value in ([], {}, [1, "two"], {"a": {"b": 1}}):
        refuse_value(kw, "a_later_member", value, "members must not nest")
    for change, text in (("cut off", json.dumps(whole)[:-1]),
                         ("in an array", f"[{json.dumps(whole)}]"), ("empty", ""),
                         ("followed by text", json.dumps(whole) + "x")):
        refuse(kw, change, "not one JSON object", text)

    refuse_value(kw, "row_count", 2 * length3, "fewer segments than the arity", cross)
    refuse_value("index", "key_count", 1024000 + 1, "more keys than shard_count * row_count", cross)
    refuse_value(kw, "length_bytes", 1, "value_bytes does not fit length_bytes", cross)
    many = {"lwe": "lwe-1572", "row_count": (1 << 24) + 64, "response_bits": 32, "hint_bits": 32}
    refuse("index", "".join(f"{name} = {value}, " for name, value in many.items()) + "new epoch",
           "more than 2^24 rows with 32 query_bits", changed("index", **many), cross)
    refuse("index", "length_bytes = 0, value_bytes = 0, new epoch", "records of no bytes",
           changed("index", length_bytes=0, value_bytes=0), cross)
    refuse_value("two-levels", "shards_a_group", 4, "a group of 1200 columns, and more than one shard", cross)
    refuse_value("two-levels", "short_key_order", 512, "a group of 900 columns", cross)
    refuse_value("short-key", "short_key_order", 32, "a group of 64 columns", cross)
    refuse_value("short-key", "shards_a_group", 3, "a group of 96 columns with a short key of order 64", cross)
    refuse_value("two-levels", "response2_bits", 10, "not above response_bits", cross)
    refuse_value("batch", "keys_per_request", 65, "fewer than 1.5 buckets for each key of a request", cross)
    refuse_value("batch", "bucket_count", 72, "fewer than 1.5 buckets for each key of a request", cross)
    refuse_value("batch", "keys_per_request", 11, "more than 8 buckets for each key of a request", cross)
    refuse_value("batch", "shard_count", 287, "no multiple of bucket_count", cross)
    refuse_value("batch", "row_count", 700416, "more than 2^26 rows of all buckets", cross)
    refuse_value("batch-words", "bucket_count", 6, "more than 2^24 rows with 32 query_bits", cross)
    codes, of_several = {"keys_per_request": 2, "bucket_count": 4}, {"format": scheme.SEVERAL_KEYS_FORMAT}
    for base in ("keyword-3", "packed-index", "two-levels"):
        refuse(base, "keys_per_request = 2, bucket_count = 4, new epoch",
               "requests for several keys in hint mode, of an index or with two levels",
               changed(base, **codes, **({} if base == "keyword-3" else of_several)), cross)
    assert is_valid(json.dumps(changed("packed-keyword", **codes, **of_several)))
    assert is_valid(json.dumps(changed("two-levels", shards_a_group=1, value_bytes=1015)))
    return {"about": "Section 2. `text` is the JSON as a server sends it. invalid: each breaks one "
                     "rule that the protocol states. invalid_cross_field: each value alone is in "
                     "range, but they contradict each other.",
            "valid": valid, "invalid": invalid, "invalid_cross_field": cross}


# RFC 8032, section 7.1, TEST 1 to 3: seed, public key, message, signature.
RFC_8032 = (
    ("9d61b19deffd5a60ba844af492ec2cc44449c5697b326919703bac031cae7f60",
     "d75a980182b10ab7d54bfed3c964073a0ee172f3daa62325af021a68f707511a", "",
     "e5564300c360ac729086e2cc806e828a84877f1eb8e5d974d873e065224901555fb8821590a33bacc61e39701cf9b46b"
     "d25bf5f0595bbe24655141438e7a100b"),
    ("4ccd089b28ff96da9db6c346ec114e0f5b8a319f35aba624da8cf6ed4fb8a6fb",
     "3d4017c3e843895a92b70aa74d1b7ebc9c982ccf2ec4968cc0cd55f12af4660c", "72",
     "92a009a9f0d4cab8720e820b5f642540a2b27b5416503f8fb3762223ebdb69da085ac1e43e15996e458f3613d0f11d8c"
     "387b2eaeb4302aeeb00d291612bb0c00"),
    ("c5aa8df43f9f837bedb7442f31dcb7b166d38535076f094b85ce3a2e0b4458f7",
     "fc51cd8e6218a1a38da47ed00230f0580816ed13ba3303ac5deb911548908025", "af82",
     "6291d657deec24024827e69c3abe01a30ce548a284743a445e3680d7db5ac3ac18ff9b538d16f290ae67f760984dc659"
     "4a7c15e9716ed28dc027beceea1ec40a"))


def plus_order(signature):
    """The same signature in a form that RFC 8032 forbids: S is not below the order of the group."""
    s = int.from_bytes(signature[32:], "little") + plain_ed25519.L
    return signature[:32] + s.to_bytes(32, "little")


def ed25519_cases():
    cases = []
    for seed, key, message, signature in RFC_8032:
        assert plain_ed25519.public_key(bytes.fromhex(seed)).hex() == key
        assert plain_ed25519.sign(bytes.fromhex(seed), bytes.fromhex(message)).hex() == signature
        cases.append({"seed": seed, "public_key": key, "message": message, "signature": signature})
    _, key, message, signature = RFC_8032[2]
    wrong = []
    for why, *changed in (
            ("another message", key, "af83", signature),
            ("a longer message", key, "af8200", signature),
            ("another key", RFC_8032[0][1], message, signature),
            ("no point for a key", (2).to_bytes(32, "little").hex(), message, signature),
            ("R changed", key, message, "63" + signature[2:]),
            ("S changed", key, message, signature[:-2] + "0b"),
            ("S not below the order", key, message, plus_order(bytes.fromhex(signature)).hex()),
            ("zeros", key, message, "00" * 64)):
        assert not plain_ed25519.verify(*map(bytes.fromhex, changed)), why
        wrong.append(dict(zip(("reason", "public_key", "message", "signature"), (why, *changed))))
    return cases, wrong


def signature_file():
    good = good_manifests()
    seeds = [stream(f"vectors/signer/{i}", 32) for i in range(2)]
    cases = {"keyword": ("keyword-3", 1795545000, 1795545000), "first": ("packed-index", 1, 0),
             "last": ("index", 2**53 - 1, 2**53 - 1), "unknown-members": ("unknown-members", 7, 1795545000)}
    signed = {name: scheme.sign_manifest(good[base], seeds[0], sequence, time)
              for name, (base, sequence, time) in cases.items()}
    for name, (base, _, _) in cases.items():
        m = scheme.read_manifest(json.dumps(signed[name]).encode())
        assert m.is_signed and m.epoch == good[base]["epoch"]
    whole = signed["keyword"]

    def refused(change, members, **more):
        text = json.dumps(members)
        assert not is_valid(text), change
        return {"change": change, "text": text} | more

    def made_for(message, **members):
        return whole | members | {"signature": plain_ed25519.sign(seeds[0], message).hex()}

    text = scheme.signed_bytes(whole)
    wrong = [
        refused("sequence raised", whole | {"sequence": whole["sequence"] + 1}),
        refused("time changed", whole | {"time": whole["time"] - 1}),
        refused("another signer", whole | {"signer": plain_ed25519.public_key(seeds[1]).hex()}),
        refused("signed by another", whole | {"signature": plain_ed25519.sign(seeds[1], text).hex()}),
        refused("one digit of the signature changed",
                whole | {"signature": ("1" if whole["signature"][0] == "0" else "0") + whole["signature"][1:]}),
        refused("S not below the order",
                whole | {"signature": plus_order(bytes.fromhex(whole["signature"])).hex()}),
        refused("made for the text without its prefix", made_for(text[len("blindfuse/manifest/1"):])),
        refused("made for the text of the epoch", made_for(
            b"blindfuse/manifest/1" + scheme.epoch_text(whole).encode())),
        refused("made for another epoch", whole | {
            "signature": scheme.sign_manifest(good["index"], seeds[0], whole["sequence"], whole["time"])["signature"]}),
    ]
    invalid = []
    for name in scheme.SIGNATURE_MEMBERS:
        without = {k: v for k, v in whole.items() if k != name}
        if name != "signature":
            without |= {"signature": plain_ed25519.sign(seeds[0], scheme.signed_bytes(without)).hex()}
        invalid.append(refused(f"without {name}", without, member=name))
    for name, values in {"sequence": (0, -1, 2**53, 2**64 - 1, "1", ""),
                         "time": (-1, 2**53, 2**64 - 1, "0"),
                         "signer": (whole["signer"].upper(), whole["signer"][:-2], whole["signer"] + "00",
                                    "g" + whole["signer"][1:], "", 7)}.items():
        for value in values:
            members = whole | {name: value}
            members |= {"signature": plain_ed25519.sign(seeds[0], scheme.signed_bytes(members)).hex()}
            invalid.append(refused(f"{name} = {json.dumps(value)}, signed again", members, member=name))
    for value in (whole["signature"].upper(), whole["signature"][:-2], whole["signature"] + "00", "", 7):
        invalid.append(refused(f"signature = {json.dumps(value)}", whole | {"signature": value},
                               member="signature"))
    right, bad = ed25519_cases()
    return {"about": "Section 2, Signature. ed25519: of RFC 8032, section 7.1; ed25519_wrong: signatures that are "
                     "refused. signed: `text` is the JSON as a server sends it, signed with the private key `seed` "
                     "over `signed_text`. wrong: of the right form, and refused. invalid: each breaks one rule of the "
                     "form.",
            "ed25519": right, "ed25519_wrong": bad,
            "signed": [{"name": name, "seed": seeds[0].hex(), "text": json.dumps(m),
                        "signed_text": scheme.signed_bytes(m).decode(), "manifest": m} for name, m in signed.items()],
            "wrong": wrong, "invalid": invalid}


def shard_table_file():
    entries, table = [], b""
    for shard, (seed, count) in enumerate(((0, 0), (0xFEDCBA9876543210, 0x0123456789))):
        hashes = [stream(f"vectors/table/{shard}/{name}", 32)
                  for name in ("input", "matrix", "hint")]
        table += scheme.SHARD_ENTRY.pack(seed, count, *hashes)
        entries.append({"seed": int64(seed), "key_count": count, "input": hashes[0].hex(),
                        "matrix": hashes[1].hex(), "hint": hashes[2].hex()})
    return {"about": "Section 3: the table of two shards. input, matrix, hint are three hashes.",
            "entries": entries, "table": table.hex(), "sha256": sha256(table).hex()}


class Database:
    """A whole database: its layout (members of the manifest), the records of every shard as
    (rows, record), the matrices and hints."""

    def __init__(self, name, layout):
        self.name = name
        self.layout = layout
        self.n = scheme.DIMENSIONS["hint"][layout["lwe"]]
        self.sizes = SimpleNamespace(**layout)
        self.w = layout["digest_bytes"] + layout["length_bytes"] + layout["value_bytes"]
        self.salt = stream(f"{name}/salt", 16)
        self.seed = stream(f"{name}/seed", 32)
        self.a = scheme.public_matrix(self.seed, self.n, layout["row_count"])
        self.matrices, self.filter_seeds, self.key_counts = [], [], []

    def finish(self):
        """Everything that follows from the matrices, as the JSON members of the file."""
        by_column = [[bytes(record[c] for record in matrix) for c in range(self.w)]
                     for matrix in self.matrices]
        columns = [numpy.stack([scheme.signed_words(column) for column in shard]) for shard in by_column]
        hints = [scheme.hint_words(self.a, shard) for shard in columns]
        hint_bits = self.layout["hint_bits"]
        self.columns = numpy.concatenate(columns)
        self.hints = [restored(hint, hint_bits).reshape(self.w, self.n) for hint in hints]
        shards, table = [], b""
        for shard, product in enumerate(hints):
            hint = rounded_bytes(product, hint_bits)
            input_hash = sha256(f"{self.name}/input/{shard}".encode())
            matrix_hash, hint_hash = sha256(*by_column[shard]), sha256(hint)
            table += scheme.SHARD_ENTRY.pack(self.filter_seeds[shard], self.key_counts[shard], input_hash,
                                             matrix_hash, hint_hash)
            shards.append({
                "filter_seed": int64(self.filter_seeds[shard]), "key_count": self.key_counts[shard],
                "input_sha256": input_hash.hex(), "matrix_columns": [c.hex() for c in by_column[shard]],
                "matrix_sha256": matrix_hash.hex(), "product_first_words": product[:16].tolist(),
                "product_last_words": product[-16:].tolist(),
                "product_sha256": sha256(words_to_bytes(product)).hex(),
                "hint_bytes": len(hint), "hint_prefix": hint[:64].hex(),
                "hint_suffix": hint[-64:].hex(), "hint_sha256": hint_hash.hex()})
        manifest = with_epoch({"format": scheme.FORMATS["hint"], "mode": "hint"} | self.layout | {
            "salt": self.salt.hex(), "seed": self.seed.hex(), "table": sha256(table).hex(),
            "samples": sha256(b"[]").hex()})
        return {"manifest": manifest, "derived": derived(manifest), "shards": shards,
                "table": table.hex()}

    def look_up(self, label, shard, rows, digest):
        """One query from secrets to record, every step of it."""
        query_bits, response_bits = self.layout["query_bits"], self.layout["response_bits"]
        row_count = self.layout["row_count"]
        s = ternary(f"{self.name}/{label}/s", self.n)
        e = ternary(f"{self.name}/{label}/e", row_count)
        b = scheme.query_words(self.a, s, e, rows)
        query = rounded_bytes(b, query_bits)
        r = scheme.response_words(restored(b, query_bits), self.columns)
        response = rounded_bytes(r, response_bits)
        block = slice(shard * self.w, (shard + 1) * self.w)
        phases = scheme.phases(restored(r, response_bits)[block], self.hints[shard], s)
        record = scheme.decode(phases)
        expected = bytes(sum(self.matrices[shard][row][c] for row in rows) % 256
                         for c in range(self.w))
        assert record == expected, f"{self.name}/{label} decodes wrongly"
        value = scheme.read_record(self.sizes, record, digest)
        return {"secret_label": f"{self.name}/{label}/s", "error_label": f"{self.name}/{label}/e",
                "s": signs(s), "e": signs(e), "shard": shard, "rows": rows, "digest": digest.hex(),
                "query_words_first": b[:16].tolist(), "query_words_sha256": sha256(words_to_bytes(b)).hex(),
                "query": query.hex(), "query_sha256": sha256(query).hex(), "response_words": r.tolist(),
                "response": response.hex(), "phases": phases.tolist(), "record": record.hex(),
                "value": None if value is None else value.hex()}


DATABASE_NOTE = (
    "s and e are written -, 0, + for -1, 0, 1. matrix_columns: R bytes each. product_*: M of the "
    "shard as words before rounding, in the order of the hint; response_words: r before rounding. "
    "*_sha256 of words: over their bytes. failure_log2 and the hashes of inputs and samples are "
    "given, not computed. ")


def keyword_file():
    layout = {"kind": "keyword", "lwe": "lwe-1288", "key_count": 150, "shard_count": 2,
              "row_count": 320, "arity": 3, "segment_length": 64, "digest_bytes": 4,
              "length_bytes": 1, "value_bytes": 12, "query_bits": 28, "response_bits": 11,
              "hint_bits": 19, "failure_log2": -40}
    db = Database("database_keyword", layout)
    keys = [b"", b"\0", b"\0\0", "é".encode(), b"\xff" * 40] + [b"key-%d" % i for i in range(145)]
    pairs = [(key, stream(f"{db.name}/value/{i}", i % 13)) for i, key in enumerate(keys)]
    pairs[12] = (pairs[12][0], b"\x80" * 12)  # the byte that only a signed reading makes negative
    pairs[13] = (pairs[13][0], bytes(12))
    entry_json, members = [], [[] for _ in range(2)]
    for key, value in pairs:
        h, x0, x1 = key_hash(db.salt, key)
        members[mulhi(x0, 2)].append((key, x1, scheme.make_record(db.sizes, value, h[16:20])))

    def rows_in(shard, x1):
        return scheme.rows_of(x1, db.filter_seeds[shard], 3, 320, 64)

    for shard in range(2):
        attempt, matrix = 0, None
        while matrix is None:
            seed = u64(stream(f"{db.name}/filter-seed/{shard}/{attempt}", 8))
            matrix = build_filter([(scheme.rows_of(x1, seed, 3, 320, 64), record)
                                   for _, x1, record in members[shard]], 320, db.w)
            attempt += 1
        db.filter_seeds.append(seed)
        db.matrices.append(matrix)
        db.key_counts.append(len(members[shard]))
    for key, value in pairs:
        h, x0, x1 = key_hash(db.salt, key)
        shard = mulhi(x0, 2)
        rows = rows_in(shard, x1)
        record = bytes(sum(db.matrices[shard][row][c] for row in rows) % 256 for c in range(db.w))
        assert scheme.read_record(db.sizes, record, h[16:20]) == value
        entry_json.append({"key": key.hex(), "value": value.hex(), "shard": shard, "rows": rows,
                           "record": record.hex()})
    out = db.finish()
    queries = []
    for label, key in (("present", pairs[10][0]), ("present-high-bytes", pairs[12][0]),
                       ("absent", b"no such key")):
        h, x0, x1 = key_hash(db.salt, key)
        shard = mulhi(x0, 2)
        found = db.look_up(label, shard, rows_in(shard, x1), h[16:20])
        expected = dict(pairs).get(key)
        assert found["value"] == (None if expected is None else expected.hex())
        queries.append({"name": label, "key": key.hex()} | found)
    assert {q["shard"] for q in queries} == {0, 1}
    return {"about": "A whole keyword database. " + DATABASE_NOTE + "A filter builder may fill the "
                     "rows otherwise: what binds it is that record(key) is the sum of its rows; "
                     "products, response and decoding start from matrix_columns.",
            "secrets_rule": STREAM_RULE, **out, "entries": entry_json, "queries": queries}


def index_file():
    layout = {"kind": "index", "lwe": "lwe-1774", "key_count": 290, "shard_count": 3,
              "row_count": 128, "arity": 1, "segment_length": 0, "digest_bytes": 0,
              "length_bytes": 1, "value_bytes": 8, "query_bits": 27, "response_bits": 9,
              "hint_bits": 17, "failure_log2": -40}
    db = Database("database_index", layout)
    values = [stream(f"{db.name}/value/{i}", i % 9) for i in range(290)]
    for shard in range(3):
        records = [scheme.make_record(db.sizes, value, b"") for value in values[shard::3]]
        db.key_counts.append(len(records))
        db.filter_seeds.append(0)
        db.matrices.append(records + [bytes(db.w)] * (128 - len(records)))
    out = db.finish()
    queries = []
    for label, index in (("first", 0), ("present", 152), ("last", 289), ("beyond-the-end", 290)):
        rows = [index // 3] if index < 290 else []
        found = db.look_up(label, index % 3, rows, b"")
        if index < 290:
            assert found["value"] == values[index].hex()
        else:
            # The record of zeros reads as an empty value: only key_count says "not there".
            assert found["value"] == "" and found["record"] == bytes(db.w).hex()
            found["value"] = None
        queries.append({"name": label, "index": index} | found)
    return {"about": "A whole index database. " + DATABASE_NOTE + "Value i stands at index i. An "
                     "index of key_count or more is not there whatever the record says: its record "
                     "of zeros would read as an empty value.",
            "secrets_rule": STREAM_RULE, **out, "values": [v.hex() for v in values],
            "queries": queries}


# --- Packed responses: the ring -----------------------------------------------------------------

def ring_value(coefficients, point):
    value = 0
    for c in reversed(coefficients):
        value = (value * point + int(c)) % Q
    return value


def nearest(numerator, denominator):
    """Halves are rounded up."""
    return (2 * numerator + denominator) // (2 * denominator)


def ring_digits(x):
    """Of the centered number over 256, rounded; each digit but the last in -128 .. 127."""
    x = nearest(x - Q if x > Q // 2 else x, 256)
    low = (x + 128) % 256 - 128
    x = (x - low) // 256
    middle = (x + 128) % 256 - 128
    return [low, middle, (x - middle) // 256]


def check_points():
    """The points' tables, by Horner's rule; the root is a small number's power."""
    assert scheme.ROOT == next(root for root in (pow(g, (Q - 1) // 4096, Q) for g in range(2, 1000))
                               if pow(root, N, Q) == Q - 1)
    polynomial = scheme.signed(ternary("vectors/ring/points", N))
    found = scheme.at_points(polynomial)
    for k in (0, 1, 1024, 2047):
        assert found[k] == ring_value(polynomial, pow(scheme.ROOT, scheme.exponent(k), Q))


def ring_file():
    seed = stream("vectors/ring/seed", 32)
    polynomial = [int(w) % Q for w in scheme.public_block(seed, 0)]
    some = [(k, scheme.exponent(k), pow(scheme.ROOT, scheme.exponent(k), Q))
            for k in (0, 1, 2, 511, 1023, 1024, 1025, 2047)]
    numbers = [0, 1, 127, 128, 129, 255, 256, 384, 32767, 32768, 65536, Q // 2, Q // 2 + 1, Q - 1,
               *(w % Q for w in stream_words("vectors/ring/x", 20))]
    words = [0, 1, 2**31 - 1, 2**31, 2**32 - 1, *stream_words("vectors/ring/words", 10)]

    def polynomial_of(name, values, **members):
        return {**members, "first": values[:4].tolist(), "last": values[-2:].tolist(),
                "sha256": sha256(words_to_bytes(values)).hex(), "name": name}

    def raised(t, bits):
        found = int(scheme.raised(array([t]), bits)[0])
        assert found == nearest(t * Q, 2**bits) < Q
        return found

    def lowered(x, bits):
        found = int(scheme.lowered(numpy.array([x]), bits)[0])
        assert found == nearest(x * 2**bits, Q) % 2**bits
        return found

    return {
        "about": "Sections 14 and 15: the ring of packed responses. lift is raise with 32 bits; digits "
                 "are those of section 19.",
        "dimension": N, "modulus": Q, "root": scheme.ROOT, "seed": seed.hex(),
        "points": [{"point": k, "exponent": exponent, "value": point} for k, exponent, point in some],
        "blocks": [polynomial_of("a", scheme.public_block(seed, j), j=j) for j in (0, 1, 1000)],
        "key_masks": [polynomial_of("w", scheme.key_mask(seed, digit), digit=digit) for digit in DIGITS],
        "values_of_block_0": [{"point": k, "value": ring_value(polynomial, point)} for k, _, point in some],
        "digits": [{"x": x, "digits": ring_digits(x)} for x in numbers],
        "lift": [{"word": w, "lifted": raised(w, 32)} for w in words],
        "lower": [{"x": x, "bits": bits, "lowered": lowered(x, bits)} for bits in (8, 10, 18) for x in numbers],
        "raise": [{"number": t, "bits": bits, "raised": raised(t, bits)}
                  for bits, t in ((8, 0), (8, 1), (8, 128), (8, 255), (10, 513), (18, 1), (18, 262143))],
    }


def packed_file():
    name, n = "packed", N
    layout = {"mode": "packed", "kind": "keyword", "lwe": "ring-2048", "key_count": 9000,
              "shard_count": 3, "row_count": 4096, "arity": 3, "segment_length": 256,
              "digest_bytes": 4, "length_bytes": 2, "value_bytes": 1494, "query_bits": 28,
              "response_bits": 10, "hint_bits": 18, "failure_log2": -40, "levels": 1}
    w, column_count = 1500, 4500
    salt, seed = stream(f"{name}/salt", 16), stream(f"{name}/seed", 32)
    filter_seeds = [u64(stream(f"{name}/filter-seed/{shard}", 8)) for shard in range(3)]
    key_counts = [3001, 2999, 3000]
    mask_bytes = n * layout["hint_bits"] // 8
    masks = [stream(f"{name}/mask/{number}", mask_bytes) for number in range(-(-column_count // PACK))]
    table, shards, packs = b"", [], []
    for shard in range(3):
        input_hash = sha256(f"{name}/input/{shard}".encode())
        matrix_hash = sha256(f"{name}/matrix/{shard}".encode())
        table += scheme.SHARD_ENTRY.pack(filter_seeds[shard], key_counts[shard], input_hash, matrix_hash,
                                         bytes(32))
        shards.append({"filter_seed": int64(filter_seeds[shard]), "key_count": key_counts[shard],
                       "input_sha256": input_hash.hex(), "matrix_sha256": matrix_hash.hex()})
    for number, mask in enumerate(masks):
        table_hash = sha256(f"{name}/table/{number}".encode())
        table += scheme.PACK_ENTRY.pack(table_hash, sha256(mask))
        packs.append({"table_sha256": table_hash.hex(), "mask_sha256": sha256(mask).hex(),
                      "mask": mask.hex()})
    manifest = with_epoch({"format": scheme.FORMATS["packed"]} | layout | {
        "salt": salt.hex(), "seed": seed.hex(), "table": sha256(table).hex(),
        "samples": sha256(b"[]").hex()})
    m = scheme.read_manifest(json.dumps(manifest).encode())
    entries, _ = scheme.read_table(m, table)
    raised = [scheme.raised(unpack(mask, n, 18), 18) for mask in masks]
    blocks = numpy.stack([scheme.public_block(seed, j) for j in range(2)])

    def look_up(label, key, value):
        shard, rows, digest = scheme.place(m, entries, key)
        label = f"{name}/{label}"
        s, e = ternary(f"{label}/s", n), ternary(f"{label}/e", 4096)
        words = scheme.packed_query_words(blocks, s, e, rows)
        errors = [ternary(f"{label}/e/y/{digit}", n) for digit in DIGITS]
        query, key_digits = rounded_bytes(words, 28), []
        for digit, values in zip(DIGITS, scheme.packing_key(seed, s, errors), strict=True):
            query += words_to_bytes(values)
            key_digits.append({"digit": digit, "e": signs(errors[digit]),
                               "first": values[:4].tolist(), "last": values[-2:].tolist(),
                               "sha256": sha256(words_to_bytes(values)).hex()})
        assert len(query) == m.query_bytes

        # What a server would answer: random masks serve as well as computed ones.
        content = stream(f"{label}/content", column_count)
        if value is not None:
            record = scheme.make_record(m, value, digest)
            content = content[:shard * w] + record + content[shard * w + w:]
        noise = [word % ((1 << 23) + 1) - (1 << 22)
                 for word in stream_words(f"{label}/noise", column_count)]
        # As large as it may be compared with the rounding of the response, 2^21 at most.
        noise[shard * w], noise[shard * w + w - 1] = 6291400, -6291400
        masked = numpy.concatenate([(scheme.times(scheme.signed(s)) @ mask % Q)[:PACK] for mask in raised])
        bodies = [nearest(byte * Q, 256) + noise[c] for c, byte in enumerate(content)]
        numbers = scheme.lowered((masked[:column_count] + numpy.array(bodies)) % Q, 10)
        response = pack(numbers, 10)
        phases = scheme.packed_phases(m, raised, s, shard, response)
        record = scheme.packed_decode(phases)
        assert record == content[shard * w:shard * w + w]
        found = scheme.read_record(m, record, digest)
        assert found == value
        return {"name": label, "key": key.hex(), "s": signs(s), "e": signs(e), "shard": shard,
                "rows": rows, "digest": digest.hex(), "query_words_first": words[:16].tolist(),
                "query_words_sha256": sha256(words_to_bytes(words)).hex(),
                "packing_key": key_digits, "query_prefix": query[:64].hex(),
                "query_suffix": query[-64:].hex(), "query_sha256": sha256(query).hex(),
                "response": response.hex(), "phases_first": phases[:16].tolist(),
                "phases_sha256": sha256(words_to_bytes(phases)).hex(), "record": record.hex(),
                "value": None if found is None else found.hex()}

    queries = [look_up("present", b"key-6", stream(f"{name}/value", 700)),
               look_up("absent", b"absent", None), look_up("empty value", b"key-1", b"")]
    # The columns of shards 0 and 1 lie in two packs each, and those of shard 2 in three.
    assert [q["shard"] for q in queries] == [2, 1, 0]
    return {"about": "Sections 14 to 18: a database with packed responses, but for what a server "
                     "computes: masks are any bytes, and responses are made of the secrets. s and e "
                     "are written -, 0, + for -1, 0, 1; packing_key has its digits, and first and last "
                     "are of their values at the points. *_sha256 of words: over their "
                     "bytes; of a query: over all of it. failure_log2, and the hashes of inputs, "
                     "matrices, tables and samples are given, not computed.",
            "secrets_rule": STREAM_RULE, "manifest": manifest, "derived": derived(manifest),
            "shards": shards, "packs": packs, "table": table.hex(), "queries": queries}


def packing_file():
    """One pack with fewer columns than places, of two blocks of rows: from the matrix to a client's bytes."""
    name, row_count, column_count, row, bits = "packing", 2 * N, 1000, 2100, {"query": 28, "response": 10, "mask": 18}
    packing.check_transforms(scheme.signed(ternary(f"{name}/points", N)),
                             numpy.array(stream_words(f"{name}/values", N), dtype=numpy.int64) % Q)
    seed = stream(f"{name}/seed", 32)
    blocks = numpy.stack([scheme.public_block(seed, j) for j in range(row_count // N)])
    columns = numpy.stack([numpy.frombuffer(stream(f"{name}/column/{c}", row_count), dtype=numpy.int8)
                           for c in range(column_count)])
    hints = packing.hint_polynomials(blocks, columns)
    for c in (0, column_count - 1):  # by the definition
        parts = [scheme.times(a.astype(numpy.int64)) @ scheme.with_power(d.astype(numpy.int64), 2 * N - 1)
                 for a, d in zip(blocks, columns[c].reshape(-1, N), strict=True)]
        assert (hints[c] == sum(parts) % 2**32).all()
    table, mask = packing.table_and_mask(hints, [scheme.key_mask(seed, k) for k in DIGITS])

    s, e = ternary(f"{name}/s", N), ternary(f"{name}/e", row_count)
    errors = [ternary(f"{name}/e/y/{digit}", N) for digit in DIGITS]
    b = restored(scheme.packed_query_words(blocks, s, e, [row]), bits["query"])
    key = scheme.packing_key(seed, s, errors)
    responses = (columns.astype(numpy.int64) @ b.astype(numpy.int64) % 2**32).astype(numpy.uint32)
    body = packing.body(table, key, responses)[:column_count]
    response = pack(scheme.lowered(body, bits["response"]), bits["response"])
    lowered_mask = pack(scheme.lowered(mask, bits["mask"]), bits["mask"])
    client = SimpleNamespace(column_count=column_count, record_bytes=column_count, response_bits=bits["response"],
                             two_levels=False)
    read_mask = scheme.raised(unpack(lowered_mask, N, bits["mask"]), bits["mask"])
    phases = scheme.packed_phases(client, [read_mask], s, 0, response)
    assert scheme.packed_decode(phases) == columns[:, row].tobytes()

    def words_of(values):
        return {"first": values[:4].tolist(), "last": values[-2:].tolist(),
                "sha256": sha256(words_to_bytes(values)).hex()}

    return {"about": "Section 19, at full size: a pack of which 24 places have no column. Row r of column c is byte r "
                     "of the label packing/column/c. hint_polynomials: the words of h_c, one column after another. "
                     "switches: of the steps from i = 1022 down, values of the three digits at the points, one "
                     "digit after another. table: all of them. mask: its coefficients. key: as a query has it. "
                     "responses: r[c]. body: its coefficients that belong to columns. first and last are "
                     "of the words, and sha256 is over the bytes of all words. The response and the lowered mask "
                     "decode to record, the bytes of the row `row`.",
            "bytes_rule": STREAM_RULE, "seed": seed.hex(), "row_count": row_count, "column_count": column_count,
            "hint_polynomials": words_of(hints.reshape(-1)),
            "switches": [{"i": i} | words_of(table[packing.STEPS - 1 - i].reshape(-1)) for i in (1022, 1021, 511, 0)],
            "table": words_of(table.reshape(-1)), "mask": words_of(mask),
            "lowered_mask_sha256": sha256(lowered_mask).hex(), "bits": bits, "row": row, "s": signs(s),
            "e_y": [signs(error) for error in errors], "key": words_to_bytes(numpy.concatenate(key)).hex(),
            "responses": responses.tolist(), "body": words_of(body), "response": response.hex(),
            "record": columns[:, row].tobytes().hex()}


def second_level_file():
    """Two databases of one matrix, whose responses have two levels. One of them has a short key."""
    name, row_count, shard_count, w = "second_level", N, 7, 20
    column_count = shard_count * w
    seed = stream(f"{name}/seed", 32)
    blocks = numpy.stack([scheme.public_block(seed, 0)])
    columns = numpy.stack([numpy.frombuffer(stream(f"{name}/column/{c}", row_count), dtype=numpy.int8)
                           for c in range(column_count)])
    first_table, mask = packing.table_and_mask(packing.hint_polynomials(blocks, columns),
                                               [scheme.key_mask(seed, k) for k in DIGITS])
    lowered_mask = pack(scheme.lowered(mask, 18), 18)
    table = b"".join(
        scheme.SHARD_ENTRY.pack(0, row_count, sha256(f"{name}/input/{shard}".encode()),
                                sha256(columns[shard * w:(shard + 1) * w].tobytes()), bytes(32))
        for shard in range(shard_count))
    table += scheme.PACK_ENTRY.pack(sha256(words_to_bytes(first_table.reshape(-1))), sha256(lowered_mask))
    layout = {"mode": "packed", "kind": "index", "lwe": "ring-2048", "key_count": shard_count * row_count,
              "shard_count": shard_count, "row_count": row_count, "arity": 1, "segment_length": 0,
              "digest_bytes": 0, "length_bytes": 0, "value_bytes": w, "query_bits": 26, "response_bits": 10,
              "hint_bits": 18, "levels": 2, "shards_a_group": 3}

    def words_of(values):
        return {"first": values[:4].tolist(), "last": values[-2:].tolist(),
                "sha256": sha256(words_to_bytes(values)).hex()}

    def key_of(label, values, errors):
        return [{"digit": k, "e": signs(error)} | words_of(value)
                for k, value, error in zip(DIGITS, values, errors, strict=True)]

    def database(label, index, **second):
        label = f"{name}/{label}"
        manifest = with_epoch({"format": scheme.FORMATS["packed"]} | layout | second | {
            "salt": stream(f"{name}/salt", 16).hex(), "seed": seed.hex(), "table": sha256(table).hex(),
            "samples": sha256(b"[]").hex()})
        m = scheme.read_manifest(json.dumps(manifest).encode())
        shards, mask_hashes = scheme.read_table(m, table)
        assert mask_hashes == [sha256(lowered_mask)]
        shard, rows, _ = scheme.place(m, shards, index)
        s, e, e2 = (ternary(f"{label}/{which}", count)
                    for which, count in (("s", N), ("e", row_count), ("e2", m.group_count)))
        errors = [ternary(f"{label}/e/y/{digit}", N) for digit in DIGITS]
        key = scheme.packing_key(seed, s, errors)
        words = scheme.packed_query_words(blocks, s, e, rows)
        query = rounded_bytes(words, m.query_bits) + words_to_bytes(numpy.concatenate(key))
        keys = {"packing_key": key_of(label, key, errors)}
        if m.short_key_order:
            errors = [ternary(f"{label}/e/short/{digit}", N) for digit in DIGITS]
            key = scheme.short_key(seed, m.short_key_order, s, errors)
            query += words_to_bytes(numpy.concatenate(key))
            keys["short_key"] = key_of(label, key, errors)
        b2 = scheme.lowered(scheme.group_numbers(m, s, e2, shard), m.query2_bits)
        query += pack(b2, m.query2_bits)
        assert len(query) == m.query_bytes

        b, read_keys, raised_b2 = packing.split_query(m, query)
        responses = (columns.astype(numpy.int64) @ b.astype(numpy.int64) % 2**32).astype(numpy.uint32)
        body = packing.body(first_table, read_keys[0], responses)[:column_count]
        numbers = scheme.lowered(body, m.response_bits)
        entries = packing.entries_of(m, numbers)
        products, hints = packing.second_products(seed, raised_b2, entries)
        # By the definition, for the last column.
        column = numpy.zeros(N, dtype=numpy.int64)
        column[:m.group_count] = entries[:, -1]
        a2 = scheme.from_points(scheme.second_block(seed, 0))
        by_definition = scheme.times(a2) @ scheme.with_power(column, 2 * N - 1) % Q
        assert (packing.to_coefficients(hints[-1]) == by_definition).all()
        packs = packing.second_packs(m, read_keys, raised_b2, numbers)
        response = packing.second_response(m, packs)
        assert len(response) == m.response_bytes
        first = scheme.first_level_numbers(m, s, shard, response)
        assert (first == numbers[shard * w:(shard + 1) * w]).all()
        read_mask = scheme.raised(unpack(lowered_mask, N, 18), 18)
        phases = scheme.packed_phases(m, [read_mask], s, shard, response)
        record = scheme.packed_decode(phases)
        assert record == columns[shard * w:(shard + 1) * w, rows[0]].tobytes()
        return {"name": label, "manifest": manifest, "derived": derived(manifest), "index": index, "shard": shard,
                "row": rows[0], "s": signs(s), "e": signs(e)} | keys | {
                "e2": signs(e2), "b2": b2.tolist(), "query_prefix": query[:64].hex(), "query_suffix": query[-64:].hex(),
                "query_sha256": sha256(query).hex(), "numbers": numbers.tolist(), "products": products.tolist(),
                "hints": words_of(packing.to_coefficients(hints).reshape(-1)), "mask": words_of(packs[0][0]),
                "body": packs[0][1][:m.group_columns].tolist(), "response": response.hex(),
                "first_level": first.tolist(), "record": record.hex()}

    databases = [database("long", 4 + 7 * 1234, query2_bits=25, mask2_bits=19, response2_bits=13,
                          short_key_order=0, failure_log2=-52),
                 database("short", 6 + 7 * 2047, query2_bits=24, mask2_bits=18, response2_bits=13,
                          short_key_order=64, failure_log2=-60)]
    assert [d["shard"] for d in databases] == [4, 6]  # the second of a group, and one that is alone in the last
    return {"about": "Sections 15 and 17 to 20, at full size: a matrix of 7 shards, and two databases of it. Byte r of "
                     "column c is byte r of the label second_level/column/c. mask: of the first level, as it is sent. "
                     "public: w'_k and a2_j, their values at the points. Of each database, a query and what "
                     "becomes of it: e2 and b2, the numbers that ask for the group, lowered; numbers: v[c]; products: "
                     "r2[k]; hints: the coefficients of h2_k, one column after another; mask and body: those of the "
                     "group's pack, as coefficients, of the body those of columns; first_level: what the client "
                     "decodes, numbers of its own shard. s and all e are written -, 0, + for -1, 0, 1. first and last "
                     "are of words, and sha256 is over the bytes of all words; of a query, over all of it. The "
                     "hashes of inputs and samples are given, not computed.",
            "bytes_rule": STREAM_RULE, "table": table.hex(), "lowered_mask": lowered_mask.hex(),
            "public": {"short_key_masks": [words_of(scheme.short_key_mask(seed, k)) for k in DIGITS],
                       "second_blocks": [{"j": j} | words_of(scheme.second_block(seed, j)) for j in (0, 1, 31)]},
            "databases": databases}


# --- Requests for several keys ------------------------------------------------------------------

def most_with_a_bucket(buckets):
    """How many of these keys can have a bucket of their own, by Hall's theorem: as many remain without one as the set of
    keys lacks that lacks most."""
    lack = 0
    for chosen in range(1 << len(buckets)):
        keys = [own for i, own in enumerate(buckets) if chosen >> i & 1]
        lack = max(lack, len(keys) - len(set().union(*keys)))
    return len(buckets) - lack


def buckets_file():
    cases, orders = [], {3: set(), 4: set()}
    for salt in (bytes(16), bytes(range(16))):
        for key in [b"", b"\0", bytes(range(256)), "Zürich – 東京".encode(), *(b"key-%d" % i for i in range(46))]:
            h, x0, _ = key_hash(salt, key)
            chosen = {count: scheme.buckets_of(h, count) for count in (3, 4, 96, 4096)}
            shards = {}
            for shard_count, count in ((3, 3), (8, 4), (288, 96), (61440, 4096)):
                own = shard_count // count
                shards[f"{shard_count}/{count}"] = [bucket * own + mulhi(x0, own) for bucket in chosen[count]]
            for count, found in orders.items():
                found.add(tuple(chosen[count]))
            cases.append({"salt": salt.hex(), "key": key.hex(), "h": h.hex(),
                          "buckets": {str(count): found for count, found in chosen.items()}, "shards": shards})
    assert len(orders[3]) == 6 and len(orders[4]) == 24  # all that there are

    matchings = []
    for count, keys in ((3, 2), (3, 3), (3, 4), (4, 4), (4, 5), (6, 6), (8, 8), (9, 9), (12, 10)):
        for attempt in range(3):
            label = f"vectors/matching/{count}/{keys}/{attempt}"
            words = stream_words(label, keys)
            # Of few buckets, so that some keys remain without.
            choices = [scheme.buckets_of(struct.pack("<I", word % 5), count) for word in words]
            most = most_with_a_bucket(choices)
            held = scheme.match(choices)
            assert len(held) == most and all(bucket in choices[key] for bucket, key in held.items())
            matchings.append({"bucket_count": count, "buckets": choices, "most": most})
    # The examples of section 21: in the first, a key moves.
    for choices, most in (([[0, 1, 3], [0, 1, 2], [0, 1, 2], [0, 1, 2]], 4), ([[0, 1, 2]] * 4, 3)):
        assert len(scheme.match(choices)) == most == most_with_a_bucket(choices)
        matchings.append({"bucket_count": 4, "buckets": choices, "most": most})
    assert any(each["most"] < len(each["buckets"]) for each in matchings)
    return {"about": "Section 21. cases: the buckets of a key in their order, by the number of buckets; and its shard "
                     "in each of them, by shard_count / bucket_count. matchings: the buckets of some keys, and how "
                     "many of these keys one request can ask for at most.",
            "cases": cases, "matchings": matchings}


def batch_file():
    """A database with requests for several keys, at full size: from the filters to the values of one request."""
    name = "batch"
    layout = {"mode": "packed", "kind": "keyword", "lwe": "ring-2048", "key_count": 100, "shard_count": 8,
              "row_count": N, "arity": 3, "segment_length": 64, "digest_bytes": 4, "length_bytes": 1,
              "value_bytes": 20, "query_bits": 26, "response_bits": 10, "hint_bits": 18, "failure_log2": -372,
              "levels": 1, "keys_per_request": 2, "bucket_count": 4}
    w, row_count, seed = 25, layout["row_count"], stream(f"{name}/seed", 32)
    salt = stream(f"{name}/salt", 16)
    sizes = SimpleNamespace(**layout, salt=salt.hex(), seed=seed.hex(), buckets=4)
    keys = [b"key-%d" % i for i in range(100)]
    pairs = {key: stream(f"{name}/value/{i}", i % 21) for i, key in enumerate(keys)}
    members = [[] for _ in range(8)]  # of each shard
    for key, value in pairs.items():
        h, x0, x1 = key_hash(salt, key)
        for bucket in scheme.buckets_of(h, 4):
            members[2 * bucket + mulhi(x0, 2)].append((x1, scheme.make_record(sizes, value, h[16:20])))
    filter_seeds, matrices = [], []
    for shard, own in enumerate(members):
        attempt, matrix = 0, None
        while matrix is None:
            filter_seed = u64(stream(f"{name}/filter-seed/{shard}/{attempt}", 8))
            matrix = build_filter([(scheme.rows_of(x1, filter_seed, 3, row_count, 64), record) for x1, record in own],
                                  row_count, w)
            attempt += 1
        filter_seeds.append(filter_seed)
        matrices.append(matrix)
    columns = numpy.concatenate([numpy.frombuffer(b"".join(matrix), dtype=numpy.int8).reshape(row_count, w).T
                                 for matrix in matrices])
    hints = packing.bucket_hints(sizes, columns)
    for c in (49, 50, 199):  # by the definition; with two shards of 25 columns, 49 is the last column of bucket 0
        a = scheme.public_block(seed, 2**32 * (c // 50)).astype(numpy.int64)
        product = scheme.times(a) @ scheme.with_power(columns[c].astype(numpy.int64), 2 * N - 1)
        assert (hints[c] == product % 2**32).all()
    packing_table, mask = packing.table_and_mask(hints, [scheme.key_mask(seed, k) for k in DIGITS])
    lowered_mask = pack(scheme.lowered(mask, 18), 18)
    table, shards = b"", []
    for shard, matrix in enumerate(matrices):
        hashes = [sha256(f"{name}/input/{shard}".encode()), sha256(columns[shard * w:(shard + 1) * w].tobytes())]
        table += scheme.SHARD_ENTRY.pack(filter_seeds[shard], len(members[shard]), *hashes, bytes(32))
        shards.append({"filter_seed": int64(filter_seeds[shard]), "key_count": len(members[shard]),
                       "matrix_sha256": hashes[1].hex(),
                       "matrix_rows": {str(r): row.hex() for r, row in enumerate(matrix) if any(row)}})
    table += scheme.PACK_ENTRY.pack(sha256(words_to_bytes(packing_table.reshape(-1))), sha256(lowered_mask))
    manifest = with_epoch({"format": scheme.SEVERAL_KEYS_FORMAT} | layout | {
        "salt": salt.hex(), "seed": seed.hex(), "table": sha256(table).hex(), "samples": sha256(b"[]").hex()})
    m = scheme.read_manifest(json.dumps(manifest).encode())
    entries, mask_hashes = scheme.read_table(m, table)
    assert mask_hashes == [sha256(lowered_mask)] and sum(entry.key_count for entry in entries) == 3 * m.key_count

    asked_for = [b"key-7", b"absent", b"key-42"]  # key-42 has an empty value
    found = [scheme.places(m, entries, key) for key in asked_for]
    # As a request may, it has more keys than keys_per_request.
    (held,) = scheme.requests_for([list(places) for places, _ in found], m.keys_per_request, m.keys_per_request)
    assert len(held) == 3
    s, e = ternary(f"{name}/s", N), ternary(f"{name}/e", m.query_numbers)
    errors = [ternary(f"{name}/e/y/{digit}", N) for digit in DIGITS]
    rows = [bucket * row_count + row for bucket, i in held.items() for row in found[i][0][bucket][1]]
    words = scheme.packed_query_words(scheme.bucket_blocks(m), s, e, rows)
    key = scheme.packing_key(seed, s, errors)
    query = rounded_bytes(words, m.query_bits) + words_to_bytes(numpy.concatenate(key))
    assert len(query) == m.query_bytes

    b = restored(words, m.query_bits)
    responses = packing.bucket_products(m, b, columns)
    assert responses[199] == sum(int(x) * int(y) for x, y in zip(columns[199], b[3 * row_count:])) % 2**32
    body = packing.body(packing_table, key, responses)[:m.column_count]
    response = pack(scheme.lowered(body, m.response_bits), m.response_bits)
    read_mask = scheme.raised(unpack(lowered_mask, N, 18), 18)
    asked = []
    for bucket in range(m.bucket_count):
        each = {"bucket": bucket, "key": None, "shard": 2 * bucket, "rows": [], "value": None}
        if bucket in held:
            places, digest = found[held[bucket]]
            shard, own_rows = places[bucket]
            each |= {"key": asked_for[held[bucket]].hex(), "shard": shard, "rows": own_rows, "digest": digest.hex()}
        record = scheme.packed_decode(scheme.packed_phases(m, [read_mask], s, each["shard"], response))
        assert record == bytes(sum(matrices[each["shard"]][row][c] for row in each["rows"]) % 256 for c in range(w))
        if bucket in held:
            value = scheme.read_record(m, record, digest)
            assert value == pairs.get(asked_for[held[bucket]])
            each["value"] = None if value is None else value.hex()
        asked.append(each | {"record": record.hex()})

    def words_of(values):
        return {"first": values[:4].tolist(), "last": values[-2:].tolist(),
                "sha256": sha256(words_to_bytes(values)).hex()}

    return {"about": "Section 21, at full size: a database whose requests are for three keys, and one request. "
                     "matrix_rows: of each shard, the rows that are not zero. A filter builder may fill the rows "
                     "otherwise; the other numbers start from these. public: a_{i,j} for bucket i. hints: the words of "
                     "h_c, one column after another. mask: its coefficients. asked: what becomes of each bucket; of "
                     "one without a key, the record of its first shard. s and e are written -, 0, + for -1, 0, 1, and "
                     "e has the numbers of all buckets, one after another. words: b, before rounding, of each bucket. "
                     "responses: r[c]. body: its coefficients that belong to columns. first and last are of words, and "
                     "sha256 is over the bytes of all words. The hashes of inputs and samples are given, not computed.",
            "bytes_rule": STREAM_RULE, "manifest": manifest, "derived": derived(manifest), "table": table.hex(),
            "entries": {key.hex(): value.hex() for key, value in pairs.items()}, "shards": shards,
            "public": [{"bucket": i, "j": j} | words_of(scheme.public_block(seed, 2**32 * i + j))
                       for i, j in ((0, 0), (1, 0), (3, 0), (1, 8191), (4095, 1))],
            "hints": words_of(hints.reshape(-1)), "mask": words_of(mask), "lowered_mask": lowered_mask.hex(),
            "asked": asked, "s": signs(s), "e": signs(e),
            "packing_key": [{"digit": k, "e": signs(errors[k])} | words_of(key[k]) for k in DIGITS],
            "words": [words_of(own) for own in numpy.split(words, m.bucket_count)],
            "query": query.hex(), "responses": responses.tolist(), "body": words_of(body), "response": response.hex()}


FILES = {"key_hash.json": key_hash_file, "fuse_slots.json": fuse_slots_file,
         "record.json": record_file, "public_matrix.json": public_matrix_file,
         "bit_packing.json": bit_packing_file, "manifest.json": manifest_file,
         "signature.json": signature_file, "shard_table.json": shard_table_file, "database_keyword.json": keyword_file,
         "database_index.json": index_file, "ring.json": ring_file,
         "packed.json": packed_file, "packing.json": packing_file, "second_level.json": second_level_file,
         "buckets.json": buckets_file, "batch.json": batch_file}


def pretty(value, indent=0):
    """JSON with short values on one line and lists of numbers filled up to the line."""
    flat = json.dumps(value, ensure_ascii=True)
    if len(flat) + indent <= 96 or not isinstance(value, (dict, list)) or not value:
        return flat
    pad = " " * (indent + 1)
    if isinstance(value, dict):
        items = [f"{pad}{json.dumps(k)}: {pretty(v, indent + 1)}" for k, v in value.items()]
        return "{\n" + ",\n".join(items) + "\n" + " " * indent + "}"
    if all(isinstance(v, int) for v in value):
        lines = [pad + ", ".join(map(str, value[i:i + 8])) for i in range(0, len(value), 8)]
    else:
        lines = [pad + pretty(v, indent + 1) for v in value]
    return "[\n" + ",\n".join(lines) + "\n" + " " * indent + "]"


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


def main(arguments):
    check_chacha20()
    check_arity_4()
    check_points()
    differ = []
    for name, make in FILES.items():
        text = pretty(make()) + "\n"
        assert len(text) < 300000, name
        path = FOLDER / name
        if arguments == ["--check"]:
            if not path.exists() or path.read_text(encoding="ascii") != text:
                differ.append(name)
        else:
            path.write_text(text, encoding="ascii")
    if differ:
        sys.exit("differ from what generate.py writes: " + ", ".join(differ))


if __name__ == "__main__":
    if sys.argv[1:] not in ([], ["--check"]):
        sys.exit(__doc__)
    main(sys.argv[1:])
