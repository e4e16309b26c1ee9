"""Manifests, right and wrong, and the table of shards. PROTOCOL.md, sections 2 and 3."""

import json

import plain_scheme as scheme
from plain_scheme import sha256

from .filters import fuse_shape
from .inputs import int64, stream


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
