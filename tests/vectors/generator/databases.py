"""Whole databases with hints."""

from types import SimpleNamespace

import numpy
import plain_scheme as scheme
from plain_scheme import key_hash, mulhi, sha256

from .filters import build_filter
from .inputs import STREAM_RULE, int64, signs, stream, ternary, u64, words_to_bytes
from .manifests import derived, with_epoch
from .rounding import restored, rounded_bytes


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
