"""A client in plain Python, written from docs/PROTOCOL.md and docs/HTTP_API.md alone, to hold those documents against
the programs. For tests: it keeps no cache, and neither Python nor numpy promises constant time or wiped memory.
Numbers in brackets are sections of docs/PROTOCOL.md."""

from __future__ import annotations

import base64
import hashlib
import json
import re
import struct
import urllib.error
import urllib.request
from types import SimpleNamespace
from typing import Any, NoReturn, Sequence

import numpy

from plain_packed import PackedMode
from plain_words import Refused, chacha20, pack, packed_bytes, require, restore, round_words, ternary, unpack

DIMENSIONS = {"hint": {"lwe-1774": 1774, "lwe-1572": 1572, "lwe-1288": 1288}, "packed": {"ring-2048": 2048}}
MANIFEST_BYTES_MAX = 65_536
KEY_BYTES_MAX = 65_536
SHARD_ENTRY = struct.Struct("<QQ32s32s32s")
PACK_ENTRY = struct.Struct("<32s32s")
U64 = 2**64 - 1


class EpochIsGone(Exception):
    """The server does not serve this epoch any more."""


class ServerError(Exception):
    def __init__(self, status: int, problem: str):
        super().__init__(f"{status} {problem}")
        self.status, self.problem = status, problem


def refuse(what: str) -> NoReturn:
    raise Refused(what)


# ---- The manifest [2]


def unique_members(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    require(len(dict(pairs)) == len(pairs), "the manifest has a member twice")
    return dict(pairs)


def epoch_id(members: dict[str, str | int]) -> str:
    """[2, epoch id]; what Python writes here is canonical, because names are ASCII and numbers integers."""
    rest = {name: value for name, value in members.items() if name != "epoch"}
    text = json.dumps(rest, sort_keys=True, separators=(",", ":"), ensure_ascii=False)
    return hashlib.sha256(b"blindfuse/epoch/1" + text.encode("ascii")).hexdigest()


def read_manifest(data: bytes) -> SimpleNamespace:
    """Checks all that [2] says, and adds the derived numbers."""
    require(len(data) <= MANIFEST_BYTES_MAX, "the manifest is too long")
    try:
        members = json.loads(data.decode("utf-8"), object_pairs_hook=unique_members, parse_constant=refuse,
                             parse_float=lambda text: refuse(f"{text} is no integer"))
    except (ValueError, RecursionError) as error:
        raise Refused(f"the manifest is no JSON: {error}") from error
    require(isinstance(members, dict), "the manifest is no object")
    for name, value in members.items():
        small = type(value) is int and abs(value) < 2**53
        require(name.isascii() and (small or type(value) is str and value.isascii()),
                f"{name!a} is neither an integer that every JSON library can hold nor a string of ASCII")

    def text(name: str, pattern: str) -> None:
        value = members.get(name)
        require(isinstance(value, str) and re.fullmatch(pattern, value) is not None, f"{name}: {value!r}")

    def integer(name: str, least: int | None, most: int) -> None:
        value = members.get(name)
        require(isinstance(value, int) and (least is None or least <= value) and value <= most, f"{name}: {value!r}")

    text("format", "blindfuse/1")
    text("mode", "hint|packed")
    text("kind", "keyword|index")
    text("lwe", "|".join(DIMENSIONS[members["mode"]]))
    packed = members["mode"] == "packed"
    for name, digits in ("epoch", 64), ("salt", 32), ("seed", 64), ("table", 64), ("samples", 64):
        text(name, f"[0-9a-f]{{{digits}}}")
    keyword = members["kind"] == "keyword"
    integer("key_count", 1, 2**32)
    integer("shard_count", 1, 65_536)
    integer("row_count", *((2048, 2**24) if packed else (64, 2**31)))
    integer("arity", *((3, 4) if keyword else (1, 1)))
    integer("segment_length", *((64, 2**18) if keyword else (0, 0)))
    integer("digest_bytes", *((1, 16) if keyword else (0, 0)))
    integer("length_bytes", 0, 4)
    integer("value_bytes", 0, 131_072)
    integer("query_bits", 24, 32)
    integer("response_bits", 9, 32)
    integer("hint_bits", 16, 32)
    integer("failure_log2", None, -40)

    m = SimpleNamespace(**members)
    require(m.row_count % (2048 if packed else 64) == 0, "row_count is no multiple of what it should be")
    require(m.length_bytes != 3, "length_bytes is 3")
    require(m.length_bytes not in (1, 2) or m.value_bytes < 256**m.length_bytes, "length_bytes cannot hold value_bytes")
    if keyword:
        length = m.segment_length
        require(length & (length - 1) == 0 and m.row_count % length == 0, "bad segment_length")
        require(m.row_count // length >= m.arity, "fewer segments than the arity")
    else:
        require(m.key_count <= m.shard_count * m.row_count, "more keys than rows")
    m.n = DIMENSIONS[m.mode][m.lwe]
    m.record_bytes = m.digest_bytes + m.length_bytes + m.value_bytes
    require(m.record_bytes > 0, "records are empty")
    m.column_count = m.shard_count * m.record_bytes
    m.pack_count = -(-m.column_count // 2048) if packed else 0
    m.query_bytes = m.row_count * m.query_bits // 8 + (49_152 if packed else 0)
    m.response_bytes = packed_bytes(m.column_count, m.response_bits)
    m.hint_bytes = 256 * m.hint_bits if packed else packed_bytes(m.record_bytes * m.n, m.hint_bits)
    require(m.epoch == epoch_id(members), "the epoch id is not that of the manifest")
    return m


# ---- The table [3]


def table_bytes(m: SimpleNamespace) -> int:
    return m.shard_count * SHARD_ENTRY.size + m.pack_count * PACK_ENTRY.size


def read_table(m: SimpleNamespace, table: bytes) -> tuple[list[SimpleNamespace], list[bytes]]:
    """The shards' entries, and the hashes of what `hint` answers: hints of shards, or masks of packs."""
    require(len(table) == table_bytes(m), "the table has another size")
    require(hashlib.sha256(table).hexdigest() == m.table, "the table is another")
    shards_end = m.shard_count * SHARD_ENTRY.size
    names = "seed", "key_count", "input", "matrix", "hint"
    shards = [SimpleNamespace(**dict(zip(names, entry))) for entry in SHARD_ENTRY.iter_unpack(table[:shards_end])]
    masks = [mask for _, mask in PACK_ENTRY.iter_unpack(table[shards_end:])]
    return shards, masks if m.mode == "packed" else [shard.hint for shard in shards]


# ---- From a key to its shard, rows and digest [4]


def mulhi(a: int, b: int) -> int:
    return a * b >> 64


def mix64(x: int) -> int:
    x ^= x >> 33
    x = x * 0xFF51AFD7ED558CCD & U64
    x ^= x >> 33
    x = x * 0xC4CEB9FE1A85EC53 & U64
    return x ^ x >> 33


def key_hash(salt: bytes, key: bytes) -> bytes:
    return hashlib.sha256(b"blindfuse/key/1" + salt + key).digest()


def shard_of(h: bytes, shard_count: int) -> int:
    return mulhi(int.from_bytes(h[0:8], "little"), shard_count)


def rows_of(x1: int, seed: int, arity: int, row_count: int, segment_length: int) -> list[int]:
    a = mix64(x1 + seed & U64)
    b = mix64(a + 0x9E3779B97F4A7C15 & U64)
    first = mulhi(a, (row_count // segment_length - (arity - 1)) * segment_length)
    return [first] + [first + i * segment_length ^ (b >> 18 * (i - 1)) % segment_length for i in range(1, arity)]


def place(m: SimpleNamespace, shards: Sequence[SimpleNamespace], key: bytes | int) -> tuple[int, list[int], bytes]:
    """The shard of a key, its rows (none for an index beyond the end [9]) and its digest."""
    if m.kind == "index":
        assert isinstance(key, int) and key >= 0
        return key % m.shard_count, [key // m.shard_count] if key < m.key_count else [], b""
    assert isinstance(key, bytes) and len(key) <= KEY_BYTES_MAX
    h = key_hash(bytes.fromhex(m.salt), key)
    shard = shard_of(h, m.shard_count)
    x1 = int.from_bytes(h[8:16], "little")
    rows = rows_of(x1, shards[shard].seed, m.arity, m.row_count, m.segment_length)
    return shard, rows, h[16:16 + m.digest_bytes]


# ---- Records [5]


def read_record(m: SimpleNamespace, record: bytes, digest: bytes) -> bytes | None:
    body = record[m.digest_bytes + m.length_bytes:]
    length = int.from_bytes(record[m.digest_bytes:][:m.length_bytes], "little") if m.length_bytes else m.value_bytes
    if record[:m.digest_bytes] != digest or length > m.value_bytes or any(body[length:]):
        return None
    return body[:length]


# ---- The public matrix [6]


def public_panel(seed: bytes, n: int, j: int) -> numpy.ndarray:
    return chacha20(seed, struct.pack("<IQ", 0, j), 4 * n).reshape(n, 64)


# ---- Queries and responses [9, 11]


def query_words(matrix: numpy.ndarray, s: numpy.ndarray, e: numpy.ndarray, rows: Sequence[int]) -> numpy.ndarray:
    """b, for a matrix of R / 64 panels."""
    b = numpy.matmul(s, matrix).reshape(-1) + e
    b[list(rows)] += numpy.uint32(1 << 24)
    return b


def phases(response: numpy.ndarray, hint: numpy.ndarray, s: numpy.ndarray) -> numpy.ndarray:
    """For the restored words of one shard: W of the response, and W * n of the hint."""
    return response - hint @ s


def decode(phase: numpy.ndarray) -> bytes:
    return (phase + numpy.uint32(1 << 23) >> numpy.uint32(24)).astype(numpy.uint8).tobytes()


class HintMode:
    """[6, 8 to 11] Queries and what becomes of their responses; hints: of all shards."""

    def __init__(self, m: SimpleNamespace, hints: Sequence[bytes]):
        self.m = m
        self.hints = [restore(unpack(hint, m.record_bytes * m.n, m.hint_bits), m.hint_bits)
                      .reshape(m.record_bytes, m.n) for hint in hints]  # column by column
        seed = bytes.fromhex(m.seed)
        self.matrix = numpy.stack([public_panel(seed, m.n, j) for j in range(m.row_count // 64)])

    def query(self, rows: Sequence[int]) -> tuple[numpy.ndarray, bytes]:
        """s, and what is sent."""
        s = ternary(self.m.n)
        b = query_words(self.matrix, s, ternary(self.m.row_count), rows)
        return s, pack(round_words(b, self.m.query_bits), self.m.query_bits)

    def record(self, s: numpy.ndarray, shard: int, answer: bytes) -> bytes:
        words = restore(unpack(answer, self.m.column_count, self.m.response_bits), self.m.response_bits)
        own = words.reshape(self.m.shard_count, self.m.record_bytes)[shard]
        return decode(phases(own, self.hints[shard], s))


class PlainClient:
    def __init__(self, url: str, as_json: bool = False):
        self.url, self.as_json, self.starts = url, as_json, 0
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
        """The values of keys (None: not there), all asked for in one request."""
        for _ in range(5):
            try:
                return self._ask(keys)
            except EpochIsGone:  # what was sent is used up [9]: a new epoch, and new queries
                self.start()
        raise EpochIsGone

    def _start(self) -> None:
        self.starts += 1
        m = read_manifest(self._fetch("/v1/database", MANIFEST_BYTES_MAX))
        path = f"/v1/epochs/{m.epoch}"
        shards, hashes = read_table(m, self._fetch(path + "/shards", table_bytes(m)))
        fetched = self._fetch(path + "/hint", len(hashes) * m.hint_bytes)  # [8, 16]: all of them
        require(len(fetched) == len(hashes) * m.hint_bytes, "the hints have another size")
        parts = [fetched[at:at + m.hint_bytes] for at in range(0, len(fetched), m.hint_bytes)]
        for i, (part, expected) in enumerate(zip(parts, hashes, strict=True)):
            require(hashlib.sha256(part).digest() == expected, f"hint or mask {i} is another")
        self.mode = PackedMode(m, parts) if m.mode == "packed" else HintMode(m, parts)
        self.manifest, self.shards = m, shards

    def _ask(self, keys: Sequence[bytes | int]) -> list[bytes | None]:
        places = [place(self.manifest, self.shards, key) for key in keys]
        queries = [self.mode.query(rows) for _, rows, _ in places]
        answers = self._post([query for _, query in queries])
        values = []
        for (s, _), (shard, rows, digest), answer in zip(queries, places, answers, strict=True):
            record = self.mode.record(s, shard, answer)
            values.append(read_record(self.manifest, record, digest) if rows else None)
            s.fill(0)
        return values

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
