#!/usr/bin/env python3
"""Holds the programs, the frozen examples and docs/PROTOCOL.md against each other, by a client that was written from
the document alone. Exits with 77, for "skipped", where no Python has numpy (`make test` installs Debian's).

plain_client_test.py --blindfuse PROGRAM --vectors FOLDER
"""

from __future__ import annotations

import argparse
import base64
import contextlib
import hashlib
import importlib.util
import json
import os
import pathlib
import signal
import subprocess
import sys
import tempfile
import time
import unittest
from types import SimpleNamespace
from typing import Any, Iterator

DEBIAN_PYTHON = "/usr/bin/python3"  # the one that python3-numpy is for; CMake may have found another

if importlib.util.find_spec("numpy") is None:
    try:
        subprocess.run([DEBIAN_PYTHON, "-c", "import numpy"], check=True, stderr=subprocess.DEVNULL)
    except (OSError, subprocess.CalledProcessError):
        print(f"skipped: neither {sys.executable} nor {DEBIAN_PYTHON} has numpy")
        sys.exit(77)
    os.execv(DEBIAN_PYTHON, [DEBIAN_PYTHON, *sys.argv])

import numpy  # noqa: E402

import plain_client as plain  # noqa: E402
import plain_packed  # noqa: E402

BLINDFUSE = ""
VECTORS = pathlib.Path()
TIMEOUT_S = 60


def vectors(name: str) -> dict[str, Any]:
    return json.loads((VECTORS / f"{name}.json").read_text())


def words(data: numpy.ndarray) -> bytes:
    return data.astype("<u4").tobytes()


def signs(text: str) -> numpy.ndarray:
    return numpy.array(["-0+".index(sign) - 1 for sign in text], dtype=numpy.int64).astype(numpy.uint32)


class FrozenExamples(unittest.TestCase):
    def test_chacha20_is_that_of_rfc_8439(self) -> None:
        key, nonce = bytes(range(32)), bytes.fromhex("000000090000004a00000000")
        block = words(plain.chacha20(key, nonce, 1, first_block=1))  # section 2.3.2
        self.assertEqual(block.hex(), "10f1e7e4d13b5915500fdd1fa32071c4c7d1f4c733c068030422aa9ac3d46c4e"
                                      "d2826446079faa0914c2d705d98b02a2b5129cd1de164eb9cbd083e8a2503c4e")
        self.assertEqual(words(plain.chacha20(key, nonce, 9))[64:128], block)

    def test_manifests(self) -> None:
        cases = vectors("manifest")
        for case in cases["valid"]:
            m = plain.read_manifest(case["text"].encode())
            self.assertEqual(plain.epoch_id(case["manifest"]), m.epoch)
            derived = dict(case["derived"], n=case["derived"]["dimension"])
            del derived["dimension"]
            self.assertEqual({name: getattr(m, name) for name in derived}, derived)
        for case in cases["invalid"] + cases["invalid_cross_field"]:
            with self.subTest(case["change"]), self.assertRaises(plain.Refused):
                plain.read_manifest(case["text"].encode())

    def test_what_canonical_json_cannot_hold_is_refused(self) -> None:
        text = vectors("manifest")["valid"][0]["text"]
        for member in ('"later": 1.0', '"later": 1e3', '"later": NaN', '"later": "\u00e9"', '"\u00e9": 1',
                       '"later": true', '"later": null', '"later": 1, "later": 1', '"arity": 3',
                       '"later": 9007199254740992', '"later": -9007199254740992'):
            with self.subTest(member), self.assertRaisesRegex(plain.Refused, "^(?!the epoch id)"):
                plain.read_manifest((text[:-1] + ", " + member + "}").encode())

    def test_shard_table(self) -> None:
        case = vectors("shard_table")
        manifest = SimpleNamespace(mode="hint", shard_count=len(case["entries"]), pack_count=0, table=case["sha256"])
        read, hashes = plain.read_table(manifest, bytes.fromhex(case["table"]))
        self.assertEqual([each.hex() for each in hashes], [entry["hint"] for entry in case["entries"]])
        for shard, entry in zip(read, case["entries"], strict=True):
            self.assertEqual((shard.seed, shard.key_count), (int(entry["seed"], 16), entry["key_count"]))
            self.assertEqual([shard.input.hex(), shard.matrix.hex(), shard.hint.hex()],
                             [entry["input"], entry["matrix"], entry["hint"]])

    def test_key_hashes(self) -> None:
        for case in vectors("key_hash")["cases"]:
            given = case["key"]
            key = bytes.fromhex(given["bytes"]) if "bytes" in given else bytes.fromhex(given["repeat"]) * given["times"]
            h = plain.key_hash(bytes.fromhex(case["salt"]), key)
            self.assertEqual(h.hex(), case["h"])
            self.assertEqual({int(s): plain.shard_of(h, int(s)) for s in case["shard"]},
                             {int(s): shard for s, shard in case["shard"].items()})

    def test_rows(self) -> None:
        cases = vectors("fuse_slots")
        for case in cases["mix64"]:
            self.assertEqual(plain.mix64(int(case["in"], 16)), int(case["out"], 16))
        for case in cases["rows"]:
            rows = plain.rows_of(int(case["x1"], 16), int(case["seed"], 16), case["arity"], case["row_count"],
                                 case["segment_length"])
            self.assertEqual(rows, case["rows"])

    def test_records(self) -> None:
        for case in vectors("record")["formats"]:
            digest = bytes.fromhex(case["digest"])
            for good in case["good"]:
                value = plain.read_record(SimpleNamespace(**case), bytes.fromhex(good["record"]), digest)
                self.assertEqual(value, bytes.fromhex(good["value"]))
            for bad in case["bad"]:
                self.assertIsNone(plain.read_record(SimpleNamespace(**case), bytes.fromhex(bad["record"]), digest))

    def test_public_matrix(self) -> None:
        cases = vectors("public_matrix")
        for case in cases["panels"]:
            panel = plain.public_panel(bytes.fromhex(cases["seed"]), case["dimension"], case["panel"])
            self.assertEqual(hashlib.sha256(words(panel)).hexdigest(), case["sha256"])

    def test_rounding_and_packing(self) -> None:
        cases = vectors("bit_packing")
        for case in cases["cases"]:
            bits = case["bits"]
            numbers = plain.round_words(numpy.array(case["words"], dtype=numpy.uint32), bits)
            self.assertEqual(numbers.tolist(), case["numbers"])
            self.assertEqual(plain.pack(numbers, bits).hex(), case["packed"])
            unpacked = plain.unpack(bytes.fromhex(case["packed"]), len(numbers), bits)
            self.assertEqual(plain.restore(unpacked, bits).tolist(), case["restored"])
        for case in cases["bad"]:
            with self.assertRaises(plain.Refused):
                plain.unpack(bytes.fromhex(case["packed"]), case["count"], case["bits"])

    def test_whole_databases(self) -> None:
        for name in "database_keyword", "database_index":
            case = vectors(name)
            m = plain.read_manifest(json.dumps(case["manifest"]).encode())
            shards, _ = plain.read_table(m, bytes.fromhex(case["table"]))
            panels = [plain.public_panel(bytes.fromhex(m.seed), m.n, j) for j in range(m.row_count // 64)]
            matrix = numpy.concatenate(panels, axis=1)
            hints, columns = [], []
            for shard, given in zip(shards, case["shards"], strict=True):
                data = [bytes.fromhex(column) for column in given["matrix_columns"]]
                columns += [numpy.frombuffer(column, dtype=numpy.int8).astype(numpy.uint32) for column in data]
                product = numpy.stack(columns[-m.record_bytes:]) @ matrix.T  # [8]
                hint = plain.pack(plain.round_words(product.reshape(-1), m.hint_bits), m.hint_bits)
                self.assertEqual(hashlib.sha256(hint).digest(), shard.hint)
                self.assertEqual(hashlib.sha256(b"".join(data)).digest(), shard.matrix)
                read = plain.unpack(hint, m.record_bytes * m.n, m.hint_bits)
                hints.append(plain.restore(read, m.hint_bits).reshape(m.record_bytes, m.n))
            for query in case["queries"]:
                key = query["index"] if m.kind == "index" else bytes.fromhex(query["key"])
                shard, rows, digest = plain.place(m, shards, key)
                self.assertEqual((shard, digest.hex()), (query["shard"], query["digest"]))
                self.assertEqual(rows, query["rows"])
                s = signs(query["s"])
                b = plain.query_words(numpy.stack(panels), s, signs(query["e"]), rows)
                self.assertEqual(hashlib.sha256(words(b)).hexdigest(), query["query_words_sha256"])
                numbers = plain.round_words(b, m.query_bits)
                self.assertEqual(plain.pack(numbers, m.query_bits).hex(), query["query"])
                answer = numpy.stack(columns) @ plain.restore(numbers, m.query_bits)  # [10]
                answer = plain.round_words(answer, m.response_bits)
                self.assertEqual(plain.pack(answer, m.response_bits).hex(), query["response"])
                own = plain.restore(answer, m.response_bits).reshape(m.shard_count, m.record_bytes)[shard]
                phases = plain.phases(own, hints[shard], s)
                self.assertEqual(phases.tolist(), query["phases"])
                self.assertEqual(plain.decode(phases).hex(), query["record"])
                value = plain.read_record(m, plain.decode(phases), digest) if rows else None
                self.assertEqual(None if value is None else value.hex(), query["value"])


    def test_ring(self) -> None:
        case = vectors("ring")
        self.assertEqual((plain_packed.Q, plain_packed.ROOT), (case["modulus"], case["root"]))
        seed, points = bytes.fromhex(case["seed"]), plain_packed.points()
        self.assertEqual([points[each["point"]] for each in case["points"]], [each["value"] for each in case["points"]])
        for block in case["blocks"]:
            found = plain_packed.public_block(seed, block["j"])
            self.assertEqual(hashlib.sha256(words(found)).hexdigest(), block["sha256"])
        for mask in case["key_masks"]:
            found = plain_packed.key_mask(seed, (5, -1)[mask["key"]], mask["digit"])
            self.assertEqual(hashlib.sha256(words(found)).hexdigest(), mask["sha256"])
        for each in case["raise"]:
            number = numpy.array([each["number"]], dtype=numpy.uint32)
            self.assertEqual(plain_packed.raised(number, each["bits"]).tolist(), [each["raised"]])
        lifts = numpy.array([each["word"] for each in case["lift"]], dtype=numpy.uint32)
        self.assertEqual(plain_packed.raised(lifts, 32).tolist(), [each["lifted"] for each in case["lift"]])

    def test_packed_database(self) -> None:
        case = vectors("packed")
        m = plain.read_manifest(json.dumps(case["manifest"]).encode())
        self.assertEqual(plain.epoch_id(case["manifest"]), m.epoch)
        shards, hashes = plain.read_table(m, bytes.fromhex(case["table"]))
        masks = [bytes.fromhex(each["mask"]) for each in case["packs"]]
        self.assertEqual([hashlib.sha256(mask).digest() for mask in masks], hashes)
        mode = plain.PackedMode(m, masks)
        for query in case["queries"]:
            key = bytes.fromhex(query["key"])
            shard, rows, digest = plain.place(m, shards, key)
            self.assertEqual((shard, rows, digest.hex()), (query["shard"], query["rows"], query["digest"]))
            s, e, errors = signs(query["s"]), signs(query["e"]), [signs(each["e"]) for each in query["packing_keys"]]
            b = plain_packed.packed_query_words(mode.blocks, s, e, rows)
            self.assertEqual(hashlib.sha256(words(b)).hexdigest(), query["query_words_sha256"])
            sent = mode.encrypt(s, e, errors, rows)
            self.assertEqual((len(sent), sent[:64].hex()), (m.query_bytes, query["query_prefix"]))
            self.assertEqual(hashlib.sha256(sent).hexdigest(), query["query_sha256"])
            answer = bytes.fromhex(query["response"])
            phases = mode.phases(s, shard, answer)
            self.assertEqual(hashlib.sha256(words(phases)).hexdigest(), query["phases_sha256"])
            record = mode.record(s, shard, answer)
            self.assertEqual(record.hex(), query["record"])
            value = plain.read_record(m, record, digest)
            self.assertEqual(None if value is None else value.hex(), query["value"])


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

    def test_keyword_without_values(self) -> None:
        self.keyword([0], "--shards", "7", "--arity", "4", "--params", "lwe-1288", lwe="lwe-1288", arity=4,
                     shard_count=7, length_bytes=0, value_bytes=0)

    def test_keyword_as_the_planner_lays_it_out(self) -> None:
        truth = {b"%d" % i: value_of(b"%d" % i, i % 33) for i in range(20_000)}
        build(self.database, list(truth.items()), "--mode", "hint")
        with served(self.database) as (url, _):
            client = plain.PlainClient(url)
            self.assertGreater(client.manifest.shard_count, 1)
            for begin in range(0, 20_000, 1_000):
                keys = [b"%d" % i for i in range(begin, begin + 6)]
                self.assertEqual(client.get(b"absent", *keys), [None, *(truth[key] for key in keys)])

    def test_index(self) -> None:
        values = [value_of(b"%d" % i, (5, 0, 17)[i % 3]) for i in range(400)]
        build(self.database, [(b"%d" % i, value) for i, value in enumerate(values)], "--index", "--shards", "3",
              "--mode", "hint")
        with served(self.database) as (url, _):
            self.check(url, dict(enumerate(values)), [400, 401, 402, 10**6, 2**63], mode="hint", kind="index",
                       shard_count=3, length_bytes=1, value_bytes=17, key_count=400)

    def test_packed_keyword_with_records_in_two_packs(self) -> None:
        # Of 3 * 910 columns, the first 2048 are one pack; the last shard's begin in it and end in the next.
        self.keyword([0, 1, 40, 7, 900], "--mode", "packed", "--shards", "3", mode="packed", lwe="ring-2048", arity=3,
                     shard_count=3, length_bytes=2, value_bytes=900, digest_bytes=8, pack_count=2)

    def test_packed_keyword_with_arity_4_and_whole_words(self) -> None:
        self.keyword([33], "--params", "ring-2048", "--shards", "2", "--arity", "4", "--digest-bytes", "16",
                     "--query-bits", "32", "--response-bits", "32", "--hint-bits", "32", mode="packed", arity=4,
                     shard_count=2, length_bytes=0, value_bytes=33, digest_bytes=16, query_bits=32, response_bits=32,
                     hint_bits=32, pack_count=1)

    def test_packed_keyword_as_the_planner_lays_it_out(self) -> None:
        truth = {b"%d" % i: value_of(b"%d" % i, i % 33) for i in range(20_000)}
        build(self.database, list(truth.items()), "--mode", "packed")
        with served(self.database) as (url, _):
            client = plain.PlainClient(url)
            self.assertEqual(client.manifest.mode, "packed")
            for begin in 0, 9_000, 19_994:
                keys = [b"%d" % i for i in range(begin, begin + 6)]
                self.assertEqual(client.get(b"absent", *keys), [None, *(truth[key] for key in keys)])

    def test_packed_index(self) -> None:
        values = [value_of(b"%d" % i, (5, 0, 17)[i % 3]) for i in range(400)]
        build(self.database, [(b"%d" % i, value) for i, value in enumerate(values)], "--index", "--shards", "3",
              "--mode", "packed")
        with served(self.database) as (url, _):
            self.check(url, dict(enumerate(values)), [400, 401, 402, 10**6, 2**63], mode="packed", kind="index",
                       shard_count=3, length_bytes=1, value_bytes=17, key_count=400, pack_count=1)

    def test_packs_and_packing_keys_that_are_refused(self) -> None:
        build(self.database, [(b"%d" % i, value_of(b"%d" % i, 700)) for i in range(20)], "--mode", "packed",
              "--shards", "3")
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
            _, query = client.mode.query([0])
            for at in len(query) - 4, len(query) - 49_152:
                for word in plain_packed.Q, 2**32 - 1:
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
                    with self.subTest(route=route, change=name), self.assertRaises(plain.Refused):
                        Altered(url, route, change)
            for name in "cut", "longer", "empty":
                client = Altered(url, "/queries", changes[name])
                for client.as_json in False, True:
                    with self.subTest(route="/queries", change=name), self.assertRaises(plain.Refused):
                        client.get(b"tea")

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
