"""A whole database with packed responses."""

import json

import numpy
import plain_scheme as scheme
from plain_scheme import DIGITS, N, PACK, Q, pack, sha256, unpack

from .inputs import STREAM_RULE, int64, signs, stream, stream_words, ternary, u64, words_to_bytes
from .manifests import derived, with_epoch
from .rings import nearest
from .rounding import rounded_bytes


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
    return {"about": "Sections 14 to 18: a database with packed responses, except what a server "
                     "computes: masks are any bytes, and responses are made of the secrets. s and e "
                     "are written -, 0, + for -1, 0, 1; packing_key has its digits, and first and last "
                     "are of their values at the points. *_sha256 of words: over their "
                     "bytes; of a query: over all of it. failure_log2, and the hashes of inputs, "
                     "matrices, tables and samples are given, not computed.",
            "secrets_rule": STREAM_RULE, "manifest": manifest, "derived": derived(manifest),
            "shards": shards, "packs": packs, "table": table.hex(), "queries": queries}
