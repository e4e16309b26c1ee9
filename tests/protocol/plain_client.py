"""A client in plain Python, written from docs/PROTOCOL.md and docs/HTTP_API.md alone, to hold those documents against
the programs. For tests: it keeps no cache. Numbers in brackets are sections of docs/PROTOCOL.md."""

from __future__ import annotations

import base64
import json
import os
import urllib.error
import urllib.request
from types import SimpleNamespace
from typing import Sequence

import numpy

import plain_scheme as scheme
from plain_scheme import DIGITS, MANIFEST_BYTES_MAX, N, Refused, Words, pack, require, restore, round_words, unpack


class NotAskedFor(Exception):
    """[21] Requests had no place for `keys`, which may be there or not; values: of the others."""

    def __init__(self, keys: list[bytes], values: dict[bytes, bytes | None]):
        super().__init__(f"{len(keys)} keys were not asked for")
        self.keys, self.values = keys, values


class EpochIsGone(Exception):
    """The server does not serve this epoch any more."""


class ServerError(Exception):
    def __init__(self, status: int, problem: str):
        super().__init__(f"{status} {problem}")
        self.status, self.problem = status, problem


def random_ternary(count: int) -> Words:
    """[9, 17] From the system's random source. One byte in 256 is not used."""
    return scheme.ternary(os.urandom(count + count // 32 + 256), count)


def random_errors(lwe: str, count: int) -> Words:
    """[9] Uniform in -4 .. 4 for lwe-1288, and ternary for the others."""
    if lwe != "lwe-1288":
        return random_ternary(count)
    return random_ternary(count) + numpy.uint32(3) * random_ternary(count)


class HintMode:
    """[6, 8 to 11] Queries and what becomes of their responses; hints: of all shards."""

    def __init__(self, m: SimpleNamespace, hints: Sequence[bytes]):
        self.m = m
        self.hints = [restore(unpack(hint, m.record_bytes * m.dimension, m.hint_bits), m.hint_bits)
                      .reshape(m.record_bytes, m.dimension) for hint in hints]  # column by column
        self.matrix = scheme.public_matrix(bytes.fromhex(m.seed), m.dimension, m.row_count)

    def query(self, shard: int, rows: Sequence[int]) -> tuple[Words, bytes]:
        """s, and what is sent, which does not depend on the shard."""
        s = random_ternary(self.m.dimension)
        b = scheme.query_words(self.matrix, s, random_errors(self.m.lwe, self.m.row_count), rows)
        return s, pack(round_words(b, self.m.query_bits), self.m.query_bits)

    def record(self, s: Words, shard: int, answer: bytes) -> bytes:
        words = restore(unpack(answer, self.m.column_count, self.m.response_bits), self.m.response_bits)
        own = words.reshape(self.m.shard_count, self.m.record_bytes)[shard]
        return scheme.decode(scheme.phases(own, self.hints[shard], s))


class PackedMode:
    """[15 to 18, 20, 21] The same; masks: of all packs. With requests for several keys, `rows` are numbers of b."""

    def __init__(self, m: SimpleNamespace, masks: Sequence[bytes]):
        self.m, self.seed = m, bytes.fromhex(m.seed)
        self.masks = [scheme.raised(unpack(mask, N, m.hint_bits), m.hint_bits) for mask in masks]
        self.blocks = scheme.bucket_blocks(m)

    def query(self, shard: int, rows: Sequence[int]) -> tuple[Words, bytes]:
        s, e = random_ternary(N), random_ternary(self.m.query_numbers)
        numbers = round_words(scheme.packed_query_words(self.blocks, s, e, rows), self.m.query_bits)
        keys = scheme.packing_key(self.seed, s, [random_ternary(N) for _ in DIGITS])
        asked = b""
        if self.m.two_levels:
            if self.m.short_key_order:
                keys += scheme.short_key(self.seed, self.m.short_key_order, s, [random_ternary(N) for _ in DIGITS])
            b2 = scheme.group_numbers(self.m, s, random_ternary(self.m.group_count), shard)
            asked = pack(scheme.lowered(b2, self.m.query2_bits), self.m.query2_bits)
        return s, pack(numbers, self.m.query_bits) + b"".join(digit.tobytes() for digit in keys) + asked

    def record(self, s: Words, shard: int, answer: bytes) -> bytes:
        return scheme.packed_decode(scheme.packed_phases(self.m, self.masks, s, shard, answer))


class PlainClient:
    def __init__(self, url: str, as_json: bool = False, server_key: str | None = None):
        self.url, self.as_json, self.starts = url, as_json, 0
        self.memory = scheme.ManifestMemory(server_key) if server_key is not None else None
        self.start()

    def start(self) -> None:
        """Takes up the current epoch; again where it goes while that is being done."""
        for attempt in range(5):
            try:
                return self._start()
            except EpochIsGone:
                if attempt == 4:
                    raise

    def get(self, *keys: bytes | int) -> list[bytes | None]:
        """The values of keys (None: not there), all asked for in one body."""
        for _ in range(5):
            try:
                return self._ask(keys)
            except EpochIsGone:  # what was sent is used up [9]: a new epoch, and new queries
                self.start()
        raise EpochIsGone

    def _start(self) -> None:
        self.starts += 1
        m = scheme.read_manifest(self._fetch("/v1/database", MANIFEST_BYTES_MAX))
        if self.memory is not None:
            self.memory.take(m)
        path = f"/v1/epochs/{m.epoch}"
        shards, hashes = scheme.read_table(m, self._fetch(path + "/shards", scheme.table_bytes(m)))
        fetched = self._fetch(path + "/hint", len(hashes) * m.hint_bytes)  # [8, 16]: all of them
        require(len(fetched) == len(hashes) * m.hint_bytes, "the hints have another size")
        parts = [fetched[at:at + m.hint_bytes] for at in range(0, len(fetched), m.hint_bytes)]
        for i, (part, expected) in enumerate(zip(parts, hashes, strict=True)):
            require(scheme.sha256(part) == expected, f"hint or mask {i} is another")
        self.mode = PackedMode(m, parts) if m.mode == "packed" else HintMode(m, parts)
        self.manifest, self.shards = m, shards

    def _ask(self, keys: Sequence[bytes | int]) -> list[bytes | None]:
        if self.manifest.batch:
            return self._ask_buckets(keys)
        places = [scheme.place(self.manifest, self.shards, key) for key in keys]
        queries = [self.mode.query(shard, rows) for shard, rows, _ in places]
        answers = self._post([query for _, query in queries])
        values = []
        for (s, _), (shard, rows, digest), answer in zip(queries, places, answers, strict=True):
            record = self.mode.record(s, shard, answer)
            values.append(scheme.read_record(self.manifest, record, digest) if rows else None)
            s.fill(0)
        return values

    def _ask_buckets(self, keys: Sequence[bytes | int]) -> list[bytes | None]:
        m = self.manifest
        distinct = [key for key in dict.fromkeys(keys) if isinstance(key, bytes)]
        places = [scheme.places(m, self.shards, key) for key in distinct]
        requests = scheme.requests_for([list(own) for own, _ in places], len(keys), m.keys_per_request)
        queries = []
        for held in requests:
            rows = [bucket * m.row_count + row for bucket, i in held.items() for row in places[i][0][bucket][1]]
            queries.append(self.mode.query(0, rows))
        answers = [self._post([query])[0] for _, query in queries]  # a server takes one at a time
        values: dict[bytes, bytes | None] = {}
        for held, (s, _), answer in zip(requests, queries, answers, strict=True):
            for bucket in range(m.bucket_count):  # for those without a key, of their first shard
                first = bucket * (m.shard_count // m.bucket_count)
                shard = places[held[bucket]][0][bucket][0] if bucket in held else first
                record = self.mode.record(s, shard, answer)
                if bucket in held:
                    values[distinct[held[bucket]]] = scheme.read_record(m, record, places[held[bucket]][1])
            s.fill(0)
        if len(values) < len(distinct):
            raise NotAskedFor([key for key in distinct if key not in values], values)
        return [values[key] for key in keys if isinstance(key, bytes)]

    def _post(self, queries: list[bytes]) -> list[bytes]:
        path = f"/v1/epochs/{self.manifest.epoch}/queries"
        size = self.manifest.response_bytes
        if self.as_json:
            body = json.dumps({"queries": [base64.b64encode(query).decode() for query in queries]}).encode()
            answer = self._request(path, "application/json", body, len(queries) * (2 * size + 64) + 1024)
            try:
                responses = [base64.b64decode(text, validate=True) for text in json.loads(answer)["responses"]]
            except (ValueError, KeyError, TypeError) as error:
                raise Refused(f"the answer is no JSON of responses: {error!r}") from error
        else:
            body = b"".join(queries)
            answer = self._request(path, "application/octet-stream", body, len(queries) * size)
            responses = [answer[at:at + size] for at in range(0, len(answer), size)]
        require([len(response) for response in responses] == [size] * len(queries), "the answer has another size")
        return responses

    def _fetch(self, path: str, bytes_max: int) -> bytes:
        return self._request(path, None, None, bytes_max)

    def _request(self, path: str, content_type: str | None, body: bytes | None, bytes_max: int) -> bytes:
        request = urllib.request.Request(self.url + path, data=body)
        if content_type is not None:
            request.add_header("Content-Type", content_type)
        try:
            with urllib.request.urlopen(request, timeout=60) as answer:
                data = answer.read(bytes_max + 1)
        except urllib.error.HTTPError as error:
            problem = json.loads(error.read(65_536))["type"].rpartition(":")[2]
            if problem in ("retired-epoch", "unknown-epoch"):
                raise EpochIsGone from error
            raise ServerError(error.code, problem) from error
        require(len(data) <= bytes_max, f"{path} is longer than it can be")
        return data
