"""Requests for several keys."""

import json
import struct
from types import SimpleNamespace

import numpy
import plain_packing as packing
import plain_scheme as scheme
from plain_scheme import DIGITS, N, key_hash, mulhi, pack, sha256, unpack

from .filters import build_filter
from .inputs import STREAM_RULE, int64, signs, stream, stream_words, ternary, u64, words_of, words_to_bytes
from .manifests import derived, with_epoch
from .rounding import restored, rounded_bytes


def most_with_a_bucket(buckets):
    """How many of these keys can have a bucket of their own, by Hall's theorem: as many remain without one as the set
    of keys lacks that lacks most."""
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
