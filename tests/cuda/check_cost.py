#!/usr/bin/env python3
"""What it costs a GPU to check every product, in two forms: four columns more, or a vector (cuda/scan/check_vector.h).

  check_cost.py                  prints the table of docs/BENCHMARKS_DETAILS.md, "A check of every product"
  check_cost.py --document FILE  exit status 1 where FILE has another table

Counted, not measured: no GPU has confirmed any of this. A scan takes as long as reading its matrix once, or as its
multiplications at the dense peak, whichever is more; so no scan is faster, and what the check adds is no larger a part
of it. Nothing of the check overlaps with anything.

  four columns  the bytes of four columns more; and of tiles of columns, of which there may be one more: each tile's
                limbs are read once for it, and its products are made whether it is full or not
  vector        4 bytes for each word of a query and of the vector, which the kernel that cuts queries reads from the
                second-level cache, and the vector once from memory; its instructions
  both          the kernel that compares: its launch, and the products and weights that it reads, a block a query
"""
import argparse
import pathlib
import re
import sys
from typing import NamedTuple

KERNELS = pathlib.Path(__file__).resolve().parents[2] / "cuda/scan/kernels"


def constant(file, name):
    return int(re.search(rf"\b{name} = (\d+);", (KERNELS / file).read_text())[1])


LIMBS = 4
TILE_COLUMNS = {"mma": 256, "wgmma": 128}
# Queries of a tile, and so what a smaller batch multiplies as well.
TILE_QUERIES = {"mma": [4, 8, 16, 32], "wgmma": [8, 16, 32, 64]}
# Instructions of a thread for 16 words that cut_bit_sequences has with sums, over those without (cuobjdump, sm_90a).
CUT_INSTRUCTIONS = 88
# Products that a block of weigh_products reads in a turn. A turn is two accesses to memory, one after the other.
TURN_PRODUCTS = constant("weigh_products.cuh", "kWeighProductsThreads") * constant("weigh_products.cuh", "kAtOnce")
TURN_SECONDS, LAUNCH_SECONDS = 1e-6, 2e-6


class Device(NamedTuple):
    name: str
    kernel: str
    processors: int
    clock: float
    memory: float  # bytes a second
    multiply_adds: float  # of bytes, a second, dense
    upload: float  # bytes a second over PCIe
    cache: float = 25  # bytes of the second-level cache a clock and multiprocessor


# NVIDIA's data sheets: H100 SXM 1,979 and A100 SXM 80 GB 624 T operations/s of signed bytes, two a multiply-add; PCIe
# 5.0 and 4.0 by 16.
DEVICES = [Device("H100", "wgmma", 132, 1.755e9, 3.35e12, 1979e12 / 2, 64e9),
           Device("A100", "mma", 108, 1.41e9, 2.04e12, 624e12 / 2, 32e9)]
# Rows, columns, bits of a query's word, and what it is.
SHAPES = [(1_179_648, 264, 28, "2^20 x 256 B, one shard"), (1_179_648, 1_032, 28, "2^20 x 1 KB, one shard"),
          (65_536, 4_096, 26, "2^20 x 256 B by number"), (53_248, 6_336, 26, "2^20 x 256 B"),
          (131_072, 8_192, 27, "a shape of the table above"), (104_448, 12_384, 27, "2^20 x 1 KB"),
          (155_648, 13_056, 27, "10^8 hashes (docs/applications)"), (40_960, 33_024, 26, "2^20 x 1 KB, packed"),
          (20_480, 102_408, 27, "2^14 x 100 KB"), (65_536, 131_072, 28, "2^19 x 64 KB by number")]
BATCHES = [1, 8, 32, 128]


def tiles(columns, width):
    return -(-columns // width)


def padded(device, batch):
    """Queries that a scan multiplies with: whole tiles; dp4a takes up to three as they are."""
    if batch <= 3:
        return batch
    sizes = TILE_QUERIES[device.kernel]
    tile = next((t for t in sizes if t >= batch), sizes[-1])
    return -(-batch // tile) * tile


def scan_seconds(device, rows, columns, batch, multiplied_columns):
    memory = rows * columns / device.memory
    return max(memory, rows * multiplied_columns * padded(device, batch) * LIMBS / device.multiply_adds)


def alone(device, rows, columns, batch):
    return scan_seconds(device, rows, columns, batch, columns)


def comparison_seconds(device, columns, batch):
    bytes_read = 8 * batch * columns
    turns = -(-columns // TURN_PRODUCTS) * TURN_SECONDS
    return LAUNCH_SECONDS + max(turns, bytes_read / (device.cache * device.processors * device.clock))


def vector_seconds(device, rows, columns, batch):
    cache = 4 * batch * rows / (device.cache * device.processors * device.clock)
    issued = batch * rows / 16 * CUT_INSTRUCTIONS / 32 / (4 * device.processors * device.clock)
    return 4 * rows / device.memory + max(cache, issued) + comparison_seconds(device, columns, batch)


def columns_seconds(device, rows, columns, batch):
    """A tile's products are made whether it is full or not."""
    width = TILE_COLUMNS[device.kernel]
    if batch <= 3:  # dp4a has no tiles, but groups of 32 columns
        width = 32
    with_four = scan_seconds(device, rows, columns + 4, batch, tiles(columns + 4, width) * width)
    without = scan_seconds(device, rows, columns, batch, tiles(columns, width) * width)
    limbs = 0 if batch <= 3 else (tiles(columns + 4, width) - tiles(columns, width)) * LIMBS * padded(device, batch)
    return (with_four - without + limbs * rows / (device.cache * device.processors * device.clock)
            + comparison_seconds(device, columns, batch))


def percent(part):
    return f"{100 * part:.1f}" if part < 0.0995 else f"{100 * part:.0f}"


def table():
    heads = ["rows x columns", "", "tiles of `wgmma`, with four columns more", "of `mma`"]
    heads += [f"{head}, {d.name}" for d in DEVICES for head in ("four columns", "vector", "upload of 32")]
    yield "| " + " | ".join(heads) + " |"
    yield "|" + "---|" * len(heads)
    for rows, columns, bits, what in SHAPES:
        counts = [f"{tiles(columns, TILE_COLUMNS[k])}, {tiles(columns + 4, TILE_COLUMNS[k])}" for k in ("wgmma", "mma")]
        cells = []
        for d in DEVICES:
            cells += [" / ".join(percent(form(d, rows, columns, b) / alone(d, rows, columns, b)) for b in BATCHES)
                      for form in (columns_seconds, vector_seconds)]
            cells.append(percent(32 * rows * bits / 8 / d.upload / alone(d, rows, columns, 32)))
        yield f"| {rows:,} x {columns:,} | {what} | " + " | ".join(counts + cells) + " |"


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--document", type=pathlib.Path, help="compare with the table in this file")
    document = parser.parse_args().document
    if document is None:
        print("\n".join(table()))
        return 0
    lines = set(document.read_text().splitlines())
    missing = [line for line in table() if line not in lines]
    for line in missing:
        print(f"{document} lacks: {line}", file=sys.stderr)
    print(f"the cost of the check: {len(missing)} lines are not in {document.name}")
    return 1 if missing else 0


if __name__ == "__main__":
    sys.exit(main())
