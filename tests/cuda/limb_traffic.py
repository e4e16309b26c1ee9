#!/usr/bin/env python3
"""What a scan on tensor cores reads of limbs: from memory, and from the second-level cache.

Simulates the order in which a scan's blocks go over the matrix (cuda/scan/kernels/chunk_walk.h) and a second-level
cache that keeps what was used last. All blocks keep pace: each takes one step of 128 rows, then each the next one. No GPU has
confirmed any of this: the figures are predicted.

  limb_traffic.py          compares with bounds; exit status 1 when one is exceeded
  limb_traffic.py --table  prints a table of all shapes

Per byte of the matrix: "HBM" is what is read and written in memory, products and limbs too; "L2 to SM" is what the
multiprocessors read of the second-level cache; "added" is what they add to products there.
"""
import argparse
import collections
import pathlib
import re
import sys
from typing import NamedTuple

KERNELS = pathlib.Path(__file__).resolve().parents[2] / "cuda/scan/kernels"
STEP_ROWS = 128
SHAPES = [(131_072, 8_192), (262_144, 4_096), (1_179_648, 1_040)]
BATCHES = [16, 32, 64, 128]


class Device(NamedTuple):
    name: str
    processors: int
    cache_bytes: int  # a part of what the data sheet says: what limbs and products may hope for


class Kernel(NamedTuple):
    name: str
    device: Device
    tile_columns: int
    # queries of a tile -> blocks of a multiprocessor at a time, as check_binary.py asserts them
    blocks: dict[int, int]


A100 = Device("A100", 108, 30_000_000)
H200 = Device("H200", 132, 40_000_000)
MMA = Kernel("mma", A100, 256, {4: 2, 8: 2, 16: 1, 32: 1})
WGMMA = Kernel("wgmma", H200, 128, {8: 3, 16: 2, 32: 2, 64: 1})


class Traffic(NamedTuple):
    hbm: float
    l2: float
    added: float


def constant(file, name):
    return int(re.search(rf"\b{name} = (\d+);", (KERNELS / file).read_text())[1])


CHUNK_STEPS = constant("chunk_walk.h", "kChunkSteps")


def even_walk(tiles, steps, walker, walkers):
    """The order before chunks: tile by tile, an even part of all each. (tile, step) of every step."""
    for place in range(tiles * steps * walker // walkers, tiles * steps * (walker + 1) // walkers):
        yield divmod(place, steps)


def chunk_walk(tiles, steps, walker, walkers):
    """Pieces of whole chunks in turns; what is left evenly."""
    turns = tiles * (steps // CHUNK_STEPS) // walkers
    for turn in range(turns):
        chunk, tile = divmod(turn * walkers + walker, tiles)
        for step in range(CHUNK_STEPS):
            yield tile, chunk * CHUNK_STEPS + step
    taken = turns * walkers * CHUNK_STEPS
    rest = tiles * steps - taken
    for place in range(taken + rest * walker // walkers, taken + rest * (walker + 1) // walkers):
        chunk, within = divmod(place, tiles * CHUNK_STEPS)
        tile, step = divmod(within, min(CHUNK_STEPS, steps - chunk * CHUNK_STEPS))
        yield tile, chunk * CHUNK_STEPS + step


class Cache:
    """Keeps what was used last, up to this many bytes; forgets what was used longest ago."""

    def __init__(self, capacity):
        self.capacity, self.size, self.kept = capacity, 0, collections.OrderedDict()

    def use(self, key, size):
        """Whether it was there."""
        if key in self.kept:
            self.kept.move_to_end(key)
            return True
        self.kept[key] = size
        self.size += size
        while self.size > self.capacity:
            self.size -= self.kept.popitem(last=False)[1]
        return False


def simulate(kernel, rows, columns, batch, walk, matrix_stays):
    """matrix_stays: the matrix takes the place of limbs in the cache, as without an evict-first policy."""
    tile_queries = next(q for q in kernel.blocks if q >= batch or q == max(kernel.blocks))
    query_tiles = -(-batch // tile_queries)
    steps, tiles = -(-rows // STEP_ROWS), -(-columns // kernel.tile_columns)
    running = kernel.blocks[tile_queries] * kernel.device.processors
    walkers = max(1, min(running // query_tiles, tiles * steps))
    matrix_step = columns / tiles * STEP_ROWS
    limb_step = 4 * tile_queries * STEP_ROWS
    product_bytes = columns / tiles * 4 * min(batch, tile_queries)
    cache = Cache(kernel.device.cache_bytes)
    hbm = l2 = added = 0.0
    walks = [list(walk(tiles, steps, w, walkers)) for w in range(walkers)]
    for i in range(max(map(len, walks))):
        for places in walks:
            if i >= len(places):
                continue
            tile, step = places[i]
            # The blocks of other queries read the same part of the matrix at the same time.
            hbm += matrix_step
            l2 += matrix_step * query_tiles
            if matrix_stays:
                cache.use(("matrix", tile, step), matrix_step)
            ends = i + 1 == len(places) or places[i + 1] != (tile, step + 1) or (
                walk is chunk_walk and (step + 1) % CHUNK_STEPS == 0)
            for queries in range(query_tiles):
                l2 += limb_step
                if not cache.use(("limbs", step, queries), limb_step):
                    hbm += limb_step
                if ends:
                    added += product_bytes
                    if not cache.use(("products", tile, queries), product_bytes):
                        hbm += 2 * product_bytes  # read, and written back
    matrix = float(rows) * columns
    return Traffic(hbm / matrix, l2 / matrix, added / matrix)


def before(kernel, rows, columns, batch):
    return simulate(kernel, rows, columns, batch, even_walk, True)


def after(kernel, rows, columns, batch):
    return simulate(kernel, rows, columns, batch, chunk_walk, False)


def table():
    print("| kernel | matrix | batch | HBM, before | HBM | added, before | added | L2 to SM |")
    print("|---|---|---|---|---|---|---|---|")
    for kernel in (MMA, WGMMA):
        for rows, columns in SHAPES:
            for batch in BATCHES:
                old, new = (f(kernel, rows, columns, batch) for f in (before, after))
                print(f"| {kernel.name}, {kernel.device.name} | {rows:,} x {columns:,} | {batch} | {old.hbm:.2f} "
                      f"| {new.hbm:.2f} | {old.added:.3f} | {new.added:.3f} | {new.l2:.2f} |")


def troubles():
    for kernel in (MMA, WGMMA):
        for rows, columns in SHAPES:
            for batch in BATCHES:
                what = f"{kernel.name} with batch {batch} on {rows:,} x {columns:,}"
                new = after(kernel, rows, columns, batch)
                # Every limb is read once, and that costs 4 batch / columns; the rest is for products.
                bound = 1.01 + 4 * batch / columns
                if new.hbm > bound:
                    yield f"{what}: {new.hbm:.3f} bytes from memory for each of the matrix, more than {bound:.3f}"
                # One addition of 4 bytes for 2048 rows and each query, and a tenth more for pieces that are cut.
                bound = 1.1 * 4 * batch / 2048
                if new.added > bound:
                    yield f"{what}: {new.added:.3f} bytes added for each of the matrix, more than {bound:.3f}"


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--table", action="store_true", help="print the figures instead of comparing them with bounds")
    if parser.parse_args().table:
        table()
        return 0
    wrong = list(troubles())
    for line in wrong:
        print(line, file=sys.stderr)
    print(f"limbs' traffic: {len(wrong)} bounds exceeded")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
