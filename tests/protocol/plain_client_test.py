#!/usr/bin/env python3
"""Holds the programs and docs/PROTOCOL.md against each other, by a client that was written from the document alone. Exits
with 77, for "skipped", where no Python has numpy (`make test` installs Debian's).

plain_client_test.py --blindfuse PROGRAM --vectors FOLDER
"""

from __future__ import annotations

import argparse
import base64
import contextlib
import hashlib
import json
import pathlib
import signal
import subprocess
import sys
import tempfile
import time
import unittest
from types import SimpleNamespace
from typing import Any, Iterator

import plain_numpy  # noqa: F401
import numpy

import plain_client as plain
import plain_ed25519
import plain_packing as packing
import plain_scheme as scheme

BLINDFUSE = ""
VECTORS = pathlib.Path()
TIMEOUT_S = 60


def vectors(name: str) -> dict[str, Any]:
    return json.loads((VECTORS / f"{name}.json").read_text())


class Manifests(unittest.TestCase):
    def test_what_canonical_json_cannot_hold_is_refused(self) -> None:
        text = vectors("manifest")["valid"][0]["text"]
        for member in ('"later": 1.0', '"later": 1e3', '"later": NaN', '"later": "\u00e9"', '"\u00e9": 1',
                       '"later": true', '"later": null', '"later": 1, "later": 1', '"arity": 3',
                       '"later": 9007199254740992', '"later": -9007199254740992'):
            with self.subTest(member), self.assertRaisesRegex(scheme.Refused, "^(?!the epoch id)"):
                scheme.read_manifest((text[:-1] + ", " + member + "}").encode())


class TwoLevels(unittest.TestCase):
    """[20] Both sides in plain Python. The first level's numbers are any."""

    def check(self, shards: list[int], **members: int) -> None:
        m = scheme.read_manifest(json.dumps(self.with_epoch(**members)).encode())
        random = numpy.random.default_rng(20)
        numbers = random.integers(0, 1 << m.response_bits, m.column_count, dtype=numpy.uint32)
        client = plain.PackedMode(m, [bytes(m.hint_bytes)] * m.pack_count)
        for shard in shards:
            with self.subTest(shard=shard, **members):
                s, query = client.query(shard, [7])
                _, keys, b2 = packing.split_query(m, query)
                response = packing.second_response(m, packing.second_packs(m, keys, b2, numbers))
                self.assertEqual(len(response), m.response_bytes)
                own = numbers[shard * m.record_bytes:(shard + 1) * m.record_bytes]
                self.assertEqual(scheme.first_level_numbers(m, s, shard, response).tolist(), own.tolist())

    def with_epoch(self, **members: int) -> dict[str, Any]:
        valid = {case["name"]: case["manifest"] for case in vectors("manifest")["valid"]}
        made = valid["short-key"] | {"key_count": 1000} | members
        return made | {"epoch": scheme.epoch_id(made)}

    def test_groups_of_several_blocks(self) -> None:
        # 2501 groups of two shards, of which the last has one.
        self.check([1, 4095, 4096, 4999, 5000], shard_count=5001, value_bytes=2, shards_a_group=2, query2_bits=28,
                   mask2_bits=18, response2_bits=12, short_key_order=4)

    def test_short_keys_with_more_places_than_columns(self) -> None:
        self.check([0, 6], shard_count=7, value_bytes=5, shards_a_group=3, query2_bits=24, mask2_bits=18,
                   response2_bits=13, short_key_order=64)
        self.check([0, 6], shard_count=7, value_bytes=1, shards_a_group=1, query2_bits=32, mask2_bits=32,
                   response2_bits=32, short_key_order=2)

    def test_queries_that_are_refused(self) -> None:
        m = scheme.read_manifest(json.dumps(self.with_epoch(shard_count=101, shards_a_group=1,
                                                            query2_bits=25)).encode())  # 2525 bits, and 3 unused
        keys = m.row_count * m.query_bits // 8
        query = bytearray(m.query_bytes)
        packing.split_query(m, bytes(query))
        for at in keys, keys + 24_576, keys + 2 * 24_576 - 4:
            bad = query[:at] + scheme.Q.to_bytes(4, "little") + query[at + 4:]
            with self.subTest(at=at), self.assertRaisesRegex(scheme.Refused, "Q or more"):
                packing.split_query(m, bytes(bad))
        with self.assertRaisesRegex(scheme.Refused, "unused bits"):
            packing.split_query(m, bytes(query[:-1]) + b"\x20")


class SeveralKeys(unittest.TestCase):
    """[21] Which key is asked for in which request and bucket."""

    def test_the_vectors(self) -> None:
        for case in vectors("buckets")["cases"]:
            h = scheme.key_hash(bytes.fromhex(case["salt"]), bytes.fromhex(case["key"]))[0]
            for count, buckets in case["buckets"].items():
                self.assertEqual(scheme.buckets_of(h, int(count)), buckets)
        for case in vectors("buckets")["matchings"]:
            held = scheme.match(case["buckets"])
            self.assertEqual(len(held), case["most"])
            for bucket, key in held.items():
                self.assertIn(bucket, case["buckets"][key])

    def test_the_number_of_requests_depends_on_that_of_the_keys_alone(self) -> None:
        same = [[0, 1, 2]] * 6
        for buckets in [], [[0, 1, 2]], same, [[i % 6, (i + 1) % 6, (i + 2) % 6] for i in range(6)]:
            for count, expected in (0, 0), (1, 1), (6, 1), (7, 2), (12, 2), (13, 3):
                if count < len(buckets):
                    continue
                requests = scheme.requests_for(buckets, count, 6)
                self.assertEqual(len(requests), expected)
                asked = [key for held in requests for key in held.values()]
                self.assertEqual(len(set(asked)), len(asked))
                most = min(len(buckets), 3 * expected) if buckets == same else len(buckets)
                self.assertEqual(len(asked), most if expected else 0)

    def test_the_request_of_the_vectors(self) -> None:
        file = vectors("batch")
        m = scheme.read_manifest(json.dumps(file["manifest"]).encode())
        scheme.read_table(m, bytes.fromhex(file["table"]))
        client = plain.PackedMode(m, [bytes.fromhex(file["lowered_mask"])])
        rows = [each["bucket"] * m.row_count + row for each in file["asked"] for row in each["rows"]]
        s, query = client.query(0, rows)
        self.assertEqual((len(query), len(s)), (len(file["query"]) // 2, len(file["s"])))
        s = numpy.array(["-0+".index(sign) - 1 for sign in file["s"]], dtype=numpy.int32).view(numpy.uint32)
        for each in file["asked"]:
            self.assertEqual(client.record(s, each["shard"], bytes.fromhex(file["response"])).hex(), each["record"])


class Signatures(unittest.TestCase):
    """[2, Signature] What a client with a public key takes."""

    seeds = bytes([1]) * 32, bytes([2]) * 32

    def setUp(self) -> None:
        self.key = plain_ed25519.public_key(self.seeds[0]).hex()
        self.members = json.loads(vectors("manifest")["valid"][0]["text"])

    def signed(self, sequence: int, time: int = 7, seed: int = 0) -> SimpleNamespace:
        members = scheme.sign_manifest(self.members, self.seeds[seed], sequence, time)
        return scheme.read_manifest(json.dumps(members).encode())

    def test_each_lie_is_told_apart(self) -> None:
        memory = scheme.ManifestMemory(self.key)
        for sequence in 5, 5, 20:
            memory.take(self.signed(sequence))
        for lie, name in (
                (scheme.read_manifest(json.dumps(self.members).encode()), "is not signed"),
                (self.signed(30, seed=1), "by another key"),
                (self.signed(10), "was rolled back"),
                (self.signed(20, time=8), "two manifests of one number")):
            with self.subTest(name), self.assertRaisesRegex(scheme.Refused, name):
                memory.take(lie)
        memory.take(self.signed(21))

    def test_a_rollback_may_be_allowed(self) -> None:
        memory = scheme.ManifestMemory(self.key, allow_rollback=True)
        memory.take(self.signed(20))
        memory.take(self.signed(10))
        self.assertEqual(memory.newest.sequence if memory.newest else None, 20)


def value_of(key: bytes, length: int) -> bytes:
    return hashlib.shake_128(b"value" + key).digest(length)


def build(database: pathlib.Path, pairs: list[tuple[bytes, bytes]], *options: str) -> None:
    source = database.with_suffix(".ndjson")
    with source.open("w") as file:
        for key, value in pairs:
            line = {"key": base64.b64encode(key).decode(), "value": base64.b64encode(value).decode()}
            file.write(json.dumps(line) + "\n")
    result = subprocess.run([BLINDFUSE, "build", source, "--key-encoding", "base64", "--value-encoding", "base64",
                             "--output", database, *options], capture_output=True, text=True, timeout=TIMEOUT_S)
    if result.returncode != 0:
        raise AssertionError(f"blindfuse build: {result.stderr}")


@contextlib.contextmanager
def served(database: pathlib.Path, *options: str) -> Iterator[tuple[str, subprocess.Popen[bytes]]]:
    """The URL of a server, and its process."""
    ready = database.with_suffix(".url")
    ready.unlink(missing_ok=True)
    server = subprocess.Popen(["setpriv", "--pdeathsig", "KILL", BLINDFUSE, "serve", database, "--listen",
                               "127.0.0.1:0", "--engine", "cpu", "--log-level", "warning", "--ready-file", ready,
                               *options])
    try:
        deadline = time.monotonic() + TIMEOUT_S
        while not (ready.exists() and ready.read_text().strip()):
            if server.poll() is not None or time.monotonic() > deadline:
                raise AssertionError("the server did not start")
            time.sleep(0.02)
        yield ready.read_text().strip(), server
        server.terminate()
        if server.wait(timeout=TIMEOUT_S) != 0:
            raise AssertionError(f"the server ended with {server.returncode}")
    finally:
        server.kill()
        server.wait()


KEYS = [b"", b"\0", b"\0\0", bytes(range(256)), b"\xff" * 300, "\u00e9t\u00e9".encode(), b"a\tb\nc\r\n"] + [
    b"key-%d" % i for i in range(700)]
ABSENT = [b"\0\0\0", b"key-700", b"KEY-1", b"\xff" * 299, b"key-1 ", b"x" * 65_536]


class Programs(unittest.TestCase):
    def setUp(self) -> None:
        self.folder = pathlib.Path(self.enterContext(tempfile.TemporaryDirectory()))
        self.database = self.folder / "database"

    def check(self, url: str, truth: dict[Any, bytes], absent: list[Any], **expected: int | str) -> None:
        present = list(truth)[:9] + list(truth)[-3:]
        for as_json in False, True:
            client = plain.PlainClient(url, as_json)
            got = {name: getattr(client.manifest, name) for name in expected}
            self.assertEqual(got, expected)
            self.assertEqual(sum(shard.key_count for shard in client.shards), client.manifest.key_count)
            self.assertEqual(client.get(*present), [truth[key] for key in present])
            for key in absent:
                self.assertEqual(client.get(key), [None])
            self.assertEqual(client.get(absent[0], present[0]), [None, truth[present[0]]])
            self.assertEqual(client.starts, 1)

    def keyword(self, lengths: list[int], *options: str, **expected: int | str) -> None:
        truth = {key: value_of(key, lengths[i % len(lengths)]) for i, key in enumerate(KEYS)}
        build(self.database, list(truth.items()), *options)
        with served(self.database) as (url, _):
            self.check(url, truth, ABSENT, kind="keyword", **expected)

    def test_keyword_with_values_of_many_lengths(self) -> None:
        self.keyword([0, 1, 40, 7, 255], "--mode", "hint", "--shards", "3", mode="hint", lwe="lwe-1774", arity=3,
                     shard_count=3, length_bytes=1, value_bytes=255, digest_bytes=8)

    def test_keyword_with_arity_4_values_of_one_length_and_whole_words(self) -> None:
        self.keyword([33], "--params", "lwe-1572", "--shards", "2", "--arity", "4", "--digest-bytes", "16",
                     "--query-bits", "32", "--response-bits", "32", "--hint-bits", "32", lwe="lwe-1572", arity=4,
                     shard_count=2, length_bytes=0, value_bytes=33, digest_bytes=16, query_bits=32, response_bits=32,
                     hint_bits=32)

    def test_keyword_with_one_shard_long_values_and_other_bits(self) -> None:
        self.keyword([3, 0, 300], "--params", "lwe-1288", "--shards", "1", "--digest-bytes", "5", "--query-bits", "27",
                     "--response-bits", "13", "--hint-bits", "21", lwe="lwe-1288", arity=3, shard_count=1,
                     length_bytes=2, value_bytes=300, digest_bytes=5, query_bits=27, response_bits=13, hint_bits=21)

    def test_keyword_as_the_planner_lays_it_out(self) -> None:
        truth = {b"%d" % i: value_of(b"%d" % i, i % 33) for i in range(20_000)}
        for mode, begins in ("hint", range(0, 20_000, 1_000)), ("packed", (0, 9_000, 19_994)):
            build(self.database, list(truth.items()), "--mode", mode)
            with self.subTest(mode), served(self.database) as (url, _):
                client = plain.PlainClient(url)
                self.assertEqual(client.manifest.mode, mode)
                for begin in begins:
                    keys = [b"%d" % i for i in range(begin, begin + 6)]
                    self.assertEqual(client.get(b"absent", *keys), [None, *(truth[key] for key in keys)])

    def test_index(self) -> None:
        values = [value_of(b"%d" % i, (5, 0, 17)[i % 3]) for i in range(400)]
        for mode in "hint", "packed":
            build(self.database, [(b"%d" % i, value) for i, value in enumerate(values)], "--index", "--shards", "3",
                  "--mode", mode)
            with self.subTest(mode), served(self.database) as (url, _):
                self.check(url, dict(enumerate(values)), [400, 401, 402, 10**6, 2**63], mode=mode, kind="index",
                           shard_count=3, length_bytes=1, value_bytes=17, key_count=400)

    def test_packed_keyword_with_records_in_two_packs(self) -> None:
        # Of 3 * 910 columns, 1024 are one pack; the last two shards' begin in one pack and end in the next.
        self.keyword([0, 1, 40, 7, 900], "--mode", "packed", "--shards", "3", mode="packed", lwe="ring-2048", arity=3,
                     shard_count=3, length_bytes=2, value_bytes=900, digest_bytes=8, pack_count=3)

    def test_packed_keyword_with_arity_4_and_whole_words(self) -> None:
        self.keyword([33], "--params", "ring-2048", "--shards", "2", "--arity", "4", "--digest-bytes", "16",
                     "--query-bits", "32", "--response-bits", "32", "--hint-bits", "32", mode="packed", arity=4,
                     shard_count=2, length_bytes=0, value_bytes=33, digest_bytes=16, query_bits=32, response_bits=32,
                     hint_bits=32, pack_count=1)

    def test_requests_for_several_keys(self) -> None:
        truth = {key: value_of(key, i % 41) for i, key in enumerate(KEYS)}
        build(self.database, list(truth.items()), "--keys-per-request", "4")

        class Counting(plain.PlainClient):
            posted = 0

            def _post(self, queries: list[bytes]) -> list[bytes]:
                self.posted += len(queries)
                return super()._post(queries)

        def look_up(client: Counting, keys: list[bytes], requests: int) -> list[bytes]:
            """Compares the values, and returns the keys that were not asked for."""
            client.posted = 0
            left_out: list[bytes] = []
            try:
                values = dict(zip(keys, client.get(*keys), strict=True))
            except plain.NotAskedFor as error:
                left_out, values = error.keys, error.values
            self.assertEqual(client.posted, requests)
            self.assertEqual(values, {key: truth.get(key) for key in keys if key not in left_out})
            return left_out

        with served(self.database) as (url, _):
            for as_json in False, True:
                client = Counting(url, as_json)
                m = client.manifest
                self.assertEqual((m.keys_per_request, m.bucket_count, m.mode, m.levels), (4, 16, "packed", 1))
                self.assertEqual(m.shard_count % 8, 0)
                self.assertEqual(m.key_count, len(truth))
                self.assertEqual(sum(shard.key_count for shard in client.shards), 3 * len(truth))
                for keys, requests in (([], 0), (KEYS[:1], 1), (ABSENT[:1], 1), (KEYS[:1] * 9, 3),
                                       (KEYS[4:9] + ABSENT, 3), (KEYS[100:120], 5)):
                    self.assertEqual(look_up(client, keys, requests), [])
                # Four keys of the same three buckets: a full request leaves one of them out.
                by_buckets: dict[tuple[int, ...], list[bytes]] = {}
                for key in KEYS:
                    buckets = tuple(sorted(scheme.places(m, client.shards, key)[0]))
                    by_buckets.setdefault(buckets, []).append(key)
                crowd = max(by_buckets.values(), key=len)[:4]
                left_out = look_up(client, crowd, 1)
                self.assertEqual(len(left_out), 1)
                self.assertEqual(look_up(client, left_out, 1), [])
                self.assertEqual(look_up(client, [*crowd, KEYS[0]], 2), [])
                self.assertEqual(client.starts, 1)

    def test_packs_and_packing_keys_that_are_refused(self) -> None:
        build(self.database, [(b"%d" % i, value_of(b"%d" % i, 700)) for i in range(20)], "--mode", "packed",
              "--shards", "2")
        with served(self.database) as (url, _):
            client = plain.PlainClient(url)
            m, hint = client.manifest, f"/v1/epochs/{client.manifest.epoch}/hint"
            self.assertEqual(m.pack_count, 2)
            masks = client._fetch(hint, 2 * m.hint_bytes)
            self.assertEqual(client._fetch(hint + "?packs=1,0", 2 * m.hint_bytes),
                             masks[m.hint_bytes:] + masks[:m.hint_bytes])
            self.assertEqual(client._fetch(hint + "?packs=1", m.hint_bytes), masks[m.hint_bytes:])
            for wrong in "?packs=2", "?packs=0-2", "?shards=0", "?packs=0&shards=0":
                with self.subTest(wrong), self.assertRaises(plain.ServerError) as raised:
                    client._fetch(hint + wrong, 10**6)
                self.assertEqual((raised.exception.status, raised.exception.problem), (400, "malformed-shards"))
            _, query = client.mode.query(0, [0])
            for at in len(query) - 4, len(query) - 24_576:
                for word in scheme.Q, 2**32 - 1:
                    bad = query[:at] + word.to_bytes(4, "little") + query[at + 4:]
                    for client.as_json in False, True:
                        with self.subTest(word=word, at=at), self.assertRaises(plain.ServerError) as raised:
                            client._post([query, bad])
                        self.assertEqual((raised.exception.status, raised.exception.problem),
                                         (400, "malformed-queries"))

    def test_a_new_epoch_while_a_client_is_at_work(self) -> None:
        build(self.database, [(b"tea", b"hot"), (b"milk", b"cold")], "--mode", "hint")
        with served(self.database, "--grace-seconds", "0", "--watch-seconds", "0") as (url, server):
            client = plain.PlainClient(url)
            self.assertEqual(client.get(b"tea", b"coffee"), [b"hot", None])
            old = client.manifest.epoch
            build(self.database, [(b"tea", b"iced"), (b"coffee", b"")], "--fresh", "--mode", "packed")
            server.send_signal(signal.SIGHUP)
            deadline = time.monotonic() + TIMEOUT_S
            with self.assertRaises(plain.EpochIsGone):  # once the old one is no longer answered
                while client._fetch(f"/v1/epochs/{old}/shards", 112):
                    self.assertLess(time.monotonic(), deadline)
                    time.sleep(0.02)
            self.assertEqual(client.get(b"tea", b"coffee", b"milk"), [b"iced", b"", None])
            self.assertEqual((client.starts, client.manifest.mode), (2, "packed"))

    def test_what_was_altered_on_the_way_is_refused(self) -> None:
        for mode in "hint", "packed":
            with self.subTest(mode=mode):
                self.refuse_what_was_altered(mode)

    def refuse_what_was_altered(self, mode: str) -> None:
        build(self.database, [(b"tea", b"hot"), (b"milk", b"cold")], "--shards", "2", "--mode", mode)

        class Altered(plain.PlainClient):
            def __init__(self, url: str, route: str, change: Any):
                self.route, self.change = route, change
                super().__init__(url)

            def _request(self, path: str, *rest: Any) -> bytes:
                data = super()._request(path, *rest)
                return self.change(data) if path.endswith(self.route) else data

        with served(self.database) as (url, _):
            # A manifest ends with a line's end, which alone may go.
            changes = {"flipped": lambda data: data[:99] + bytes([data[99] ^ 1]) + data[100:],
                       "cut": lambda data: data[:-2], "longer": lambda data: data + b"0", "empty": lambda data: b""}
            for route in "/database", "/shards", "/hint":
                for name, change in changes.items():
                    with self.subTest(route=route, change=name), self.assertRaises(scheme.Refused):
                        Altered(url, route, change)
            for name in "cut", "longer", "empty":
                client = Altered(url, "/queries", changes[name])
                for client.as_json in False, True:
                    with self.subTest(route="/queries", change=name), self.assertRaises(scheme.Refused):
                        client.get(b"tea")

    def test_a_signed_database(self) -> None:
        keys = []
        for name in "own.key", "other.key":
            made = subprocess.run([BLINDFUSE, "keygen", self.folder / name], capture_output=True, text=True,
                                  timeout=TIMEOUT_S, check=True)
            keys.append(made.stdout.strip())
        build(self.database, [(b"tea", b"hot")], "--mode", "hint", "--sign", str(self.folder / "own.key"))
        with served(self.database) as (url, _):
            client = plain.PlainClient(url, server_key=keys[0])
            self.assertEqual(client.get(b"tea"), [b"hot"])
            self.assertEqual(client.manifest.signer, keys[0])
            with self.assertRaisesRegex(scheme.Refused, "by another key"):
                plain.PlainClient(url, server_key=keys[1])

    def test_more_queries_than_a_request_may_hold(self) -> None:
        build(self.database, [(b"tea", b"hot")], "--mode", "hint")
        with served(self.database) as (url, _):
            for as_json in False, True:
                client = plain.PlainClient(url, as_json)
                openapi = json.loads(client._fetch("/openapi.json", 2**20))
                queries = openapi["components"]["schemas"]["Queries"]["properties"]["queries"]
                self.assertEqual(queries["maxItems"], 16)
                self.assertEqual(client.get(*[b"tea", b"milk"] * 8), [b"hot", None] * 8)
                refusals = []
                for count in 17, 40:
                    with self.assertRaises(plain.ServerError) as raised:
                        client.get(*[b"tea"] * count)
                    refusals.append((raised.exception.status, raised.exception.problem))
                # 17 small queries fit into as many bytes as JSON with 16 may have.
                self.assertEqual(refusals, [(400, "malformed-queries") if as_json else (413, "body-too-large"),
                                            (413, "body-too-large")])


def main() -> None:
    global BLINDFUSE, VECTORS
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--blindfuse", required=True, help="the program")
    parser.add_argument("--vectors", type=pathlib.Path, required=True, help="tests/vectors")
    arguments, rest = parser.parse_known_args()
    BLINDFUSE, VECTORS = arguments.blindfuse, arguments.vectors
    unittest.main(argv=[sys.argv[0], *rest])


if __name__ == "__main__":
    main()
