#!/usr/bin/env python3
"""Writes the test vectors of docs/PROTOCOL.md, by the scheme in plain Python, which is independent of the product:
tests/protocol/plain_scheme.py. The folder generator has inputs, what can be wrong with them, and what a server does.

    generate.py            writes the *.json files next to this script
    generate.py --check    fails when the files on disk differ from what it would write

In the JSON files, text that starts with 0x is one integer; other hexadecimal text is bytes, in
order.
"""

import json
import sys
from pathlib import Path

FOLDER = Path(__file__).resolve().parent
sys.path.insert(0, str(FOLDER.parent / "protocol"))
import plain_numpy  # noqa: E402, F401
from generator.batches import batch_file, buckets_file  # noqa: E402
from generator.databases import index_file, keyword_file  # noqa: E402
from generator.filters import check_arity_4  # noqa: E402
from generator.keys import fuse_slots_file, key_hash_file, record_file  # noqa: E402
from generator.manifests import manifest_file, shard_table_file  # noqa: E402
from generator.packed import packed_file  # noqa: E402
from generator.packs import packing_file, second_level_file  # noqa: E402
from generator.rings import check_points, ring_file  # noqa: E402
from generator.signatures import signature_file  # noqa: E402
from generator.words import bit_packing_file, check_chacha20, public_matrix_file  # noqa: E402

FILES = {"key_hash.json": key_hash_file, "fuse_slots.json": fuse_slots_file,
         "record.json": record_file, "public_matrix.json": public_matrix_file,
         "bit_packing.json": bit_packing_file, "manifest.json": manifest_file,
         "signature.json": signature_file, "shard_table.json": shard_table_file, "database_keyword.json": keyword_file,
         "database_index.json": index_file, "ring.json": ring_file,
         "packed.json": packed_file, "packing.json": packing_file, "second_level.json": second_level_file,
         "buckets.json": buckets_file, "batch.json": batch_file}


def pretty(value, indent=0):
    """JSON with short values on one line and lists of numbers filled up to the line."""
    flat = json.dumps(value, ensure_ascii=True)
    if len(flat) + indent <= 96 or not isinstance(value, (dict, list)) or not value:
        return flat
    pad = " " * (indent + 1)
    if isinstance(value, dict):
        items = [f"{pad}{json.dumps(k)}: {pretty(v, indent + 1)}" for k, v in value.items()]
        return "{\n" + ",\n".join(items) + "\n" + " " * indent + "}"
    if all(isinstance(v, int) for v in value):
        lines = [pad + ", ".join(map(str, value[i:i + 8])) for i in range(0, len(value), 8)]
    else:
        lines = [pad + pretty(v, indent + 1) for v in value]
    return "[\n" + ",\n".join(lines) + "\n" + " " * indent + "]"


def main(arguments):
    check_chacha20()
    check_arity_4()
    check_points()
    differ = []
    for name, make in FILES.items():
        text = pretty(make()) + "\n"
        assert len(text) < 300000, name
        path = FOLDER / name
        if arguments == ["--check"]:
            if not path.exists() or path.read_text(encoding="ascii") != text:
                differ.append(name)
        else:
            path.write_text(text, encoding="ascii")
    if differ:
        sys.exit("differ from what generate.py writes: " + ", ".join(differ))


if __name__ == "__main__":
    if sys.argv[1:] not in ([], ["--check"]):
        sys.exit(__doc__)
    main(sys.argv[1:])
