"""Packing under one key, and the second level."""

import json
from types import SimpleNamespace

import numpy
import plain_packing as packing
import plain_scheme as scheme
from plain_scheme import DIGITS, N, Q, pack, sha256, unpack

from .inputs import STREAM_RULE, signs, stream, stream_words, ternary, words_of, words_to_bytes
from .manifests import derived, with_epoch
from .rounding import restored, rounded_bytes


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
