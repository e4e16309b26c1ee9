"""The scheme in plain Python, written from docs/PROTOCOL.md alone and independent of the programs: what a client does, and
of a server the products. The client of plain_client.py and the examples of tests/vectors are made of it. For tests:
neither Python nor numpy promises constant time or wiped memory.

Numbers in brackets are sections of docs/PROTOCOL.md. Words are arrays of numpy.uint32, whose sums and products are
those modulo 2^32."""

from __future__ import annotations

import functools
import hashlib
import json
import re
import struct
from types import SimpleNamespace
from typing import Any, NoReturn, Sequence

import numpy

import plain_ed25519

Words = numpy.ndarray

FORMATS = {"hint": "blindfuse/1", "packed": "blindfuse/2"}
SEVERAL_KEYS_FORMAT = "blindfuse/3"
DIMENSIONS = {"hint": {"lwe-1774": 1774, "lwe-1572": 1572, "lwe-1288": 1288}, "packed": {"ring-2048": 2048}}
MANIFEST_BYTES_MAX = 65_536
KEY_BYTES_MAX = 65_536
PACK = 1024  # places of a pack [16]
SHARD_ENTRY = struct.Struct("<QQ32s32s32s")
PACK_ENTRY = struct.Struct("<32s32s")
U64 = 2**64 - 1


class Refused(Exception):
    """What the server sent is not what the protocol says."""


def refuse(what: str) -> NoReturn:
    raise Refused(what)


def require(condition: bool, what: str) -> None:
    if not condition:
        refuse(what)


def sha256(*parts: bytes) -> bytes:
    return hashlib.sha256(b"".join(parts)).digest()


# ---- The manifest [2]


def unique_members(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    require(len(dict(pairs)) == len(pairs), "the manifest has a member twice")
    return dict(pairs)


SIGNATURE_MEMBERS = ("sequence", "time", "signer", "signature")


def canonical(members: dict[str, str | int], *left_out: str) -> str:
    """What Python writes here is canonical, because names are ASCII and numbers integers."""
    rest = {name: value for name, value in members.items() if name not in left_out}
    return json.dumps(rest, sort_keys=True, separators=(",", ":"))


def epoch_text(members: dict[str, str | int]) -> str:
    return canonical(members, "epoch", *SIGNATURE_MEMBERS)


def epoch_id(members: dict[str, str | int]) -> str:
    return sha256(b"blindfuse/epoch/1", epoch_text(members).encode("ascii")).hex()


def signed_bytes(members: dict[str, str | int]) -> bytes:
    return b"blindfuse/manifest/1" + canonical(members, "signature").encode("ascii")


def sign_manifest(members: dict[str, str | int], seed: bytes, sequence: int, time: int) -> dict[str, str | int]:
    """The manifest, signed with the private key `seed`."""
    made = members | {"sequence": sequence, "time": time, "signer": plain_ed25519.public_key(seed).hex()}
    return made | {"signature": plain_ed25519.sign(seed, signed_bytes(made)).hex()}


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

    text("mode", "hint|packed")
    batch = "keys_per_request" in members or "bucket_count" in members
    several = batch and members["mode"] == "packed"
    text("format", SEVERAL_KEYS_FORMAT if several else FORMATS[members["mode"]])
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
    if packed:
        integer("levels", 1, 2)
    two_levels = packed and members["levels"] == 2
    if batch:
        require(packed and keyword and not two_levels, "requests for several keys in a database that cannot have them")
        integer("keys_per_request", 2, 1024)
        integer("bucket_count", 3, 4096)
    if two_levels:
        integer("shards_a_group", 1, members["shard_count"])
        integer("query2_bits", 16, 32)
        integer("mask2_bits", 16, 32)
        integer("response2_bits", members["response_bits"] + 1, 32)
        integer("short_key_order", 0, 512)

    m = SimpleNamespace(**members)
    m.two_levels, m.batch = two_levels, batch
    m.buckets = m.bucket_count if batch else 1
    require(m.row_count % (2048 if packed else 64) == 0, "row_count is no multiple of what it should be")
    require(m.length_bytes != 3, "length_bytes is 3")
    require(m.length_bytes not in (1, 2) or m.value_bytes < 256**m.length_bytes, "length_bytes cannot hold value_bytes")
    if keyword:
        length = m.segment_length
        require(length & (length - 1) == 0 and m.row_count % length == 0, "bad segment_length")
        require(m.row_count // length >= m.arity, "fewer segments than the arity")
    else:
        require(m.key_count <= m.shard_count * m.row_count, "more keys than rows")
    m.query_numbers = m.buckets * m.row_count
    require(m.query_bits < 32 or m.query_numbers <= 2**24, "too many rows for 32 query_bits")
    if batch:
        require(3 * m.keys_per_request <= 2 * m.bucket_count, "fewer than 1.5 buckets for each key of a request")
        require(m.bucket_count <= 8 * m.keys_per_request, "more than 8 buckets for each key of a request")
        require(m.shard_count % m.bucket_count == 0, "shard_count is no multiple of bucket_count")
        require(m.query_numbers <= 2**26, "row_count times bucket_count is above 2^26")
    m.dimension = DIMENSIONS[m.mode][m.lwe]
    m.record_bytes = m.digest_bytes + m.length_bytes + m.value_bytes
    require(m.record_bytes > 0, "records are empty")
    m.column_count = m.shard_count * m.record_bytes
    m.pack_count = -(-m.column_count // PACK) if packed else 0
    m.query_bytes = m.query_numbers * m.query_bits // 8 + (24_576 if packed else 0)
    m.response_bytes = bit_sequence_bytes(m.column_count, m.response_bits)
    if two_levels:
        order, m.group_columns = m.short_key_order, m.shards_a_group * m.record_bytes
        require(order & (order - 1) == 0 and order != 1, "short_key_order is no power of two")
        require(m.group_columns <= PACK or m.shards_a_group == 1, "groups of shards are wider than a pack")
        require(order == 0 or m.group_columns <= order, "groups are wider than what the short key packs")
        m.key_order = order or PACK  # K
        m.group_count = -(-m.shard_count // m.shards_a_group)  # G
        m.group_pack_count = -(-m.group_columns // PACK)  # P2
        m.query_bytes += bit_sequence_bytes(m.group_count, m.query2_bits) + (24_576 if order else 0)
        m.response_bytes = (m.group_pack_count * bit_sequence_bytes(N, m.mask2_bits) +
                            bit_sequence_bytes(m.group_columns, m.response2_bits))
    m.hint_bytes = bit_sequence_bytes(2048 if packed else m.record_bytes * m.dimension, m.hint_bits)
    require(m.epoch == epoch_id(members), "the epoch id is not that of the manifest")
    m.is_signed = any(name in members for name in SIGNATURE_MEMBERS)
    if m.is_signed:
        integer("sequence", 1, 2**53 - 1)
        integer("time", 0, 2**53 - 1)
        text("signer", "[0-9a-f]{64}")
        text("signature", "[0-9a-f]{128}")
        right = plain_ed25519.verify(bytes.fromhex(m.signer), signed_bytes(members), bytes.fromhex(m.signature))
        require(right, "the signature is wrong")
        m.signed_bytes = signed_bytes(members)
    return m


class ManifestMemory:
    """[2, Signature] What a client that has a public key takes: what it took before counts."""

    def __init__(self, server_key: str, allow_rollback: bool = False):
        self.server_key, self.allow_rollback = server_key, allow_rollback
        self.newest: SimpleNamespace | None = None

    def take(self, m: SimpleNamespace) -> None:
        require(m.is_signed, "the manifest is not signed")
        require(m.signer == self.server_key, "the manifest is signed by another key")
        newest = self.newest
        if newest is not None:
            require(m.sequence >= newest.sequence or self.allow_rollback, "the manifest was rolled back")
            require(m.sequence != newest.sequence or m.signed_bytes == newest.signed_bytes,
                    "there are two manifests of one number")
        if newest is None or m.sequence > newest.sequence:
            self.newest = m


# ---- The table [3]


def table_bytes(m: SimpleNamespace) -> int:
    return m.shard_count * SHARD_ENTRY.size + m.pack_count * PACK_ENTRY.size


def read_table(m: SimpleNamespace, table: bytes) -> tuple[list[SimpleNamespace], list[bytes]]:
    """The shards' entries, and the hashes of what `hint` answers: hints of shards, or masks of packs."""
    require(len(table) == table_bytes(m), "the table has another size")
    require(sha256(table).hex() == m.table, "the table is another")
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


def key_hash(salt: bytes, key: bytes) -> tuple[bytes, int, int]:
    """h, x0 and x1; the digest is a piece of h from byte 16 on."""
    h = sha256(b"blindfuse/key/1", salt, key)
    return h, int.from_bytes(h[0:8], "little"), int.from_bytes(h[8:16], "little")


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
    h, x0, x1 = key_hash(bytes.fromhex(m.salt), key)
    shard = mulhi(x0, m.shard_count)
    rows = rows_of(x1, shards[shard].seed, m.arity, m.row_count, m.segment_length)
    return shard, rows, h[16:16 + m.digest_bytes]


# ---- The buckets of a key, and which of them asks for it [21]


def buckets_of(h: bytes, bucket_count: int) -> list[int]:
    """Three buckets: each word picks one of those that are left."""
    left, w, chosen = list(range(bucket_count)), sha256(b"blindfuse/buckets/1", h), []
    for i in range(3):
        chosen.append(left.pop(mulhi(int.from_bytes(w[8 * i:8 * i + 8], "little"), len(left))))
    return chosen


def places(m: SimpleNamespace, shards: Sequence[SimpleNamespace],
           key: bytes) -> tuple[dict[int, tuple[int, list[int]]], bytes]:
    """The shard of a key and its rows there, for each of its buckets; and its digest."""
    assert isinstance(key, bytes) and len(key) <= KEY_BYTES_MAX
    h, x0, x1 = key_hash(bytes.fromhex(m.salt), key)
    bucket_shards, found = m.shard_count // m.bucket_count, {}
    for bucket in buckets_of(h, m.bucket_count):
        shard = bucket * bucket_shards + mulhi(x0, bucket_shards)
        found[bucket] = shard, rows_of(x1, shards[shard].seed, m.arity, m.row_count, m.segment_length)
    return found, h[16:16 + m.digest_bytes]


def match(buckets: Sequence[Sequence[int]]) -> dict[int, int]:
    """By buckets, the number of the key that is asked for there, for as many keys as can be; buckets: of each key."""
    held: dict[int, int] = {}

    def find(key: int, seen: set[int]) -> bool:
        for bucket in buckets[key]:
            if bucket not in seen:
                seen.add(bucket)
                if bucket not in held or find(held[bucket], seen):
                    held[bucket] = key
                    return True
        return False

    for key in range(len(buckets)):
        find(key, set())
    return held


def requests_for(buckets: Sequence[Sequence[int]], count: int, keys_per_request: int) -> list[dict[int, int]]:
    """The result of match() for each request of a list of `count` keys; buckets: of each distinct key. Keys that are in
    none of them are not asked for."""
    left, made = list(range(len(buckets))), []
    for _ in range(-(-count // keys_per_request)):
        held = {bucket: left[i] for bucket, i in match([buckets[key] for key in left]).items()}
        placed = set(held.values())
        left = [key for key in left if key not in placed]
        made.append(held)
    return made


# ---- Records [5]; m: their sizes, as the manifest has them


def make_record(m: SimpleNamespace, value: bytes, digest: bytes) -> bytes:
    assert len(value) <= m.value_bytes and (m.length_bytes or len(value) == m.value_bytes)
    length = len(value).to_bytes(m.length_bytes, "little") if m.length_bytes else b""
    return digest + length + value + bytes(m.value_bytes - len(value))


def read_record(m: SimpleNamespace, record: bytes, digest: bytes) -> bytes | None:
    """None: not there."""
    body = record[m.digest_bytes + m.length_bytes:]
    length = int.from_bytes(record[m.digest_bytes:][:m.length_bytes], "little") if m.length_bytes else m.value_bytes
    if record[:m.digest_bytes] != digest or length > m.value_bytes or any(body[length:]):
        return None
    return body[:length]


# ---- ChaCha20 [6, 15]


def quarter_rounds(a: Words, b: Words, c: Words, d: Words) -> None:
    """Four at once of every block: each operand is a row of the state (RFC 8439, section 2.1)."""
    for x, y, z, bits in (a, b, d, 16), (c, d, b, 12), (a, b, d, 8), (c, d, b, 7):
        x += y
        z ^= x
        z[:] = z << numpy.uint32(bits) | z >> numpy.uint32(32 - bits)


def chacha20(key: bytes, nonce: bytes, block_count: int, first_block: int = 0) -> Words:
    """The words of the keystream (RFC 8439, section 2.3), all blocks side by side."""
    start = numpy.empty((4, 4, block_count), dtype=numpy.uint32)
    words = numpy.frombuffer(b"expand 32-byte k" + key + bytes(4) + nonce, dtype="<u4")
    start[:] = words.reshape(4, 4, 1)
    start[3, 0] = numpy.arange(first_block, first_block + block_count, dtype=numpy.uint32)
    a, b, c, d = start.copy()
    for _ in range(10):
        quarter_rounds(a, b, c, d)
        b, c, d = (numpy.roll(row, -i, axis=0) for i, row in enumerate((b, c, d), start=1))
        quarter_rounds(a, b, c, d)
        b, c, d = (numpy.roll(row, i, axis=0) for i, row in enumerate((b, c, d), start=1))
    return (numpy.stack((a, b, c, d)) + start).reshape(16, block_count).T.reshape(-1)


# ---- The public matrix [6]


def public_panel(seed: bytes, n: int, j: int) -> Words:
    return chacha20(seed, struct.pack("<IQ", 0, j), 4 * n).reshape(n, 64)


def public_matrix(seed: bytes, n: int, row_count: int) -> Words:
    """A, as its panels."""
    return numpy.stack([public_panel(seed, n, j) for j in range(row_count // 64)])


# ---- Rounded words [7]


def bit_sequence_bytes(count: int, bits: int) -> int:
    return (count * bits + 7) // 8


def round_words(words: Words, bits: int) -> Words:
    k = 32 - bits
    if k == 0:
        return words.copy()
    wide = words.astype(numpy.uint64)
    number, rest, half = wide >> numpy.uint64(k), wide % numpy.uint64(1 << k), 1 << (k - 1)
    number += (rest > half) | ((rest == half) & (number % numpy.uint64(2) == 1))
    return (number % numpy.uint64(1 << bits)).astype(numpy.uint32)


def restore(numbers: Words, bits: int) -> Words:
    return numbers << numpy.uint32(32 - bits)


def pack(numbers: Words, bits: int) -> bytes:
    all_bits = numpy.unpackbits(numbers.astype("<u4").view(numpy.uint8).reshape(-1, 4), axis=1, bitorder="little")
    return numpy.packbits(all_bits[:, :bits], bitorder="little").tobytes()


def unpack(data: bytes, count: int, bits: int) -> Words:
    require(len(data) == bit_sequence_bytes(count, bits), "packed numbers have another size")
    all_bits = numpy.unpackbits(numpy.frombuffer(data, dtype=numpy.uint8), bitorder="little")
    require(not all_bits[count * bits:].any(), "unused bits are set")
    padded = numpy.zeros((count, 32), dtype=numpy.uint8)
    padded[:, :bits] = all_bits[:count * bits].reshape(count, bits)
    return numpy.packbits(padded, axis=1, bitorder="little").reshape(-1).view("<u4").astype(numpy.uint32)


# ---- The server's products [8, 10]; columns: of the matrix, signed bytes as words


def signed_words(data: bytes) -> Words:
    return numpy.frombuffer(data, dtype=numpy.int8).astype(numpy.uint32)


def hint_words(matrix: Words, columns: Words) -> Words:
    """M of one shard, column by column."""
    rows = numpy.concatenate(list(matrix), axis=1)
    return (columns @ rows.T).reshape(-1)


def response_words(b: Words, columns: Words) -> Words:
    return columns @ b


# ---- Queries and responses [9, 11]


def ternary(data: bytes, count: int) -> Words:
    """Numbers that are uniform in -1, 0, 1, as words: bytes below 255 modulo 3. There have to be enough."""
    drawn = numpy.frombuffer(data, dtype=numpy.uint8)
    trits = drawn[drawn < 255][:count] % 3
    assert len(trits) == count
    return trits.astype(numpy.uint32) - numpy.uint32(1)


def query_words(matrix: Words, s: Words, e: Words, rows: Sequence[int]) -> Words:
    """b."""
    b = numpy.matmul(s, matrix).reshape(-1) + e
    b[list(rows)] += numpy.uint32(1 << 24)
    return b


def phases(response: Words, hint: Words, s: Words) -> Words:
    """For the restored words of one shard: W of the response, and W * n of the hint."""
    return response - hint @ s


def decode(phase: Words) -> bytes:
    return (phase + numpy.uint32(1 << 23) >> numpy.uint32(24)).astype(numpy.uint8).tobytes()


# ---- The ring [14]. Polynomials are multiplied and evaluated by their definitions, as tables: with 2048 coefficients
# that is fast enough.

N = 2048
Q = 4_294_955_009
ROOT = 3_199_275_160


def exponent(point: int) -> int:
    """Of the root's power that is this point."""
    return pow(5, point, 2 * N) if point < N // 2 else -pow(5, point - N // 2, 2 * N) % (2 * N)


@functools.cache
def powers_of_points() -> numpy.ndarray:
    """Point k to the power i, for every k and i."""
    z = numpy.array([pow(ROOT, exponent(k), Q) for k in range(N)], dtype=numpy.uint64)
    powers = numpy.ones((N, N), dtype=numpy.uint64)  # by exponents, then turned
    for i in range(1, N):
        powers[i] = powers[i - 1] * z % Q
    return numpy.ascontiguousarray(powers.T.astype(numpy.int64))


def at_points(small: numpy.ndarray) -> numpy.ndarray:
    """Values of a polynomial of small coefficients, such as -1, 0 and 1: the sums below stay below 2^63."""
    assert abs(small).max(initial=0) < 2**16
    return powers_of_points() @ small.astype(numpy.int64) % Q


@functools.cache
def powers_from_points() -> numpy.ndarray:
    """The inverse of powers_of_points(): point k to the power -i, over 2048."""
    return multiply(powers_of_points()[numpy.arange(N) - N // 2].T, numpy.int64(pow(N, -1, Q)))


def from_points(values: numpy.ndarray) -> numpy.ndarray:
    """The coefficients of a polynomial, from its values: in halves, so that sums stay below 2^63."""
    low, high = values % 2**16, values // 2**16
    return (powers_from_points() @ low + (powers_from_points() @ high % Q) * 2**16) % Q


def with_power(f: numpy.ndarray, g: int) -> numpy.ndarray:
    """f(X^g)."""
    exponents = numpy.arange(N) * g % (2 * N)
    moved = numpy.empty_like(f)
    moved[exponents % N] = numpy.where(exponents < N, f, -f)
    return moved


def times(f: numpy.ndarray) -> numpy.ndarray:
    """The matrix that multiplies coefficients with f, modulo X^2048 + 1: in column j stands X^j f."""
    windows = numpy.lib.stride_tricks.sliding_window_view(numpy.concatenate((-f, f)), N)
    return windows[1:, ::-1]  # in row i and column j: number i - j of f, or less number 2048 + i - j


def multiply(a: numpy.ndarray, b: numpy.ndarray) -> numpy.ndarray:
    """Of numbers modulo Q, one by one."""
    return (a.astype(numpy.uint64) * b.astype(numpy.uint64) % Q).astype(numpy.int64)


def raised(t: Words, bits: int) -> numpy.ndarray:
    """From modulo 2^bits to modulo Q; lift is that of words."""
    scaled = t.astype(numpy.uint64) * numpy.uint64(Q) + numpy.uint64(1 << bits - 1)
    return (scaled >> numpy.uint64(bits)).astype(numpy.int64)


def lowered(x: numpy.ndarray, bits: int) -> Words:
    """From modulo Q to modulo 2^bits; no halves: Q is odd."""
    scaled = (x.astype(numpy.uint64) << numpy.uint64(bits)) + numpy.uint64(Q // 2)  # below 2^64
    return (scaled // numpy.uint64(Q) % numpy.uint64(1 << bits)).astype(numpy.uint32)


# ---- Queries and responses of the mode "packed" [15 to 18, 20]

DIGITS = (0, 1, 2)  # of a packing key


def public_block(seed: bytes, j: int) -> Words:
    return chacha20(seed, struct.pack("<IQ", 0, j), N // 16)


def bucket_blocks(m: SimpleNamespace) -> Words:
    """[21] a_{i,j}, one a row, bucket after bucket; with one bucket, a_j."""
    seed = bytes.fromhex(m.seed)
    return numpy.stack([public_block(seed, 2**32 * i + j) for i in range(m.buckets) for j in range(m.row_count // N)])


def public_values(seed: bytes, stream: int) -> Words:
    words = chacha20(seed, struct.pack("<IQ", 0, stream), N // 16 + 8)
    return words[words < Q][:N]


def key_mask(seed: bytes, k: int) -> Words:
    """The values of w_k."""
    return public_values(seed, 2**63 + k)


def short_key_mask(seed: bytes, k: int) -> Words:
    """The values of w'_k."""
    return public_values(seed, 2**63 + 3 + k)


def second_block(seed: bytes, j: int) -> Words:
    """The values of a2_j."""
    return public_values(seed, 2**63 + 2**32 + j)


def signed(words: Words) -> numpy.ndarray:
    return words.view(numpy.int32).astype(numpy.int64)


def packed_query_words(blocks: Words, s: Words, e: Words, rows: Sequence[int]) -> Words:
    """b, for R / 2048 blocks."""
    b = numpy.matmul(blocks, times(s).T).reshape(-1) + e
    b[list(rows)] += numpy.uint32(1 << 24)
    return b


def switching_key(masks: Sequence[Words], power: int, s: Words, errors: Sequence[Words]) -> list[Words]:
    """A key for X^(5^power): its values for each of DIGITS. masks: the values of w_k or w'_k; errors: of each."""
    values, turned, key = at_points(signed(s)), at_points(with_power(signed(s), pow(5, power, 2 * N))), []
    for k, mask, e in zip(DIGITS, masks, errors, strict=True):
        y = at_points(signed(e)) - multiply(values, mask) + 2**(8 + 8 * k) * turned
        key.append((y % Q).astype("<u4"))
    return key


def packing_key(seed: bytes, s: Words, errors: Sequence[Words]) -> list[Words]:
    """The values of y_k."""
    return switching_key([key_mask(seed, k) for k in DIGITS], 1, s, errors)


def short_key(seed: bytes, order: int, s: Words, errors: Sequence[Words]) -> list[Words]:
    """The values of y'_k."""
    return switching_key([short_key_mask(seed, k) for k in DIGITS], PACK // order, s, errors)


def group_numbers(m: SimpleNamespace, s: Words, e: Words, shard: int) -> numpy.ndarray:
    """b2, not yet lowered."""
    b = signed(e)
    secret = at_points(signed(s))
    for j in range(-(-m.group_count // N)):
        product = from_points(multiply(secret, second_block(bytes.fromhex(m.seed), j)))
        b[j * N:(j + 1) * N] += product[:len(b) - j * N]
    b[shard // m.shards_a_group] += int(raised(numpy.array([1], dtype=numpy.uint32), m.response_bits)[0])
    return b % Q


def phases_of(columns: numpy.ndarray, bodies: numpy.ndarray, masks: Sequence[numpy.ndarray], s: Words) -> numpy.ndarray:
    """Of these columns, from their raised words and the raised masks of all packs."""
    found = bodies.copy()
    for pack_number in range(columns[0] // PACK, columns[-1] // PACK + 1):
        own = columns // PACK == pack_number
        found[own] -= (times(signed(s)) @ masks[pack_number] % Q)[columns[own] % PACK]
    return found % Q


def group_phases(m: SimpleNamespace, s: Words, shard: int, answer: bytes) -> numpy.ndarray:
    """[20] Of the columns of one shard in its group."""
    mask_bytes = bit_sequence_bytes(N, m.mask2_bits)
    words_begin = m.group_pack_count * mask_bytes
    masks = [raised(unpack(answer[at:at + mask_bytes], N, m.mask2_bits), m.mask2_bits)
             for at in range(0, words_begin, mask_bytes)]
    words = raised(unpack(answer[words_begin:], m.group_columns, m.response2_bits), m.response2_bits)
    columns = numpy.arange(m.record_bytes) + m.record_bytes * (shard % m.shards_a_group)
    return phases_of(columns, words[columns], masks, s)


def first_level_numbers(m: SimpleNamespace, s: Words, shard: int, answer: bytes) -> Words:
    """The shard's own numbers of the first level."""
    if m.two_levels:
        entries = lowered(group_phases(m, s, shard, answer), m.response_bits)
        return (entries + numpy.uint32(1 << m.response_bits - 1)) % numpy.uint32(1 << m.response_bits)
    return unpack(answer, m.column_count, m.response_bits)[shard * m.record_bytes:][:m.record_bytes]


def packed_phases(m: SimpleNamespace, masks: Sequence[numpy.ndarray], s: Words, shard: int,
                  answer: bytes) -> numpy.ndarray:
    """Of one shard's columns, for the raised masks of all packs."""
    columns = numpy.arange(shard * m.record_bytes, (shard + 1) * m.record_bytes)
    bodies = raised(first_level_numbers(m, s, shard, answer), m.response_bits)
    return phases_of(columns, bodies, masks, s)


def packed_decode(phase: numpy.ndarray) -> bytes:
    return lowered(phase, 8).astype(numpy.uint8).tobytes()
