// The arguments of the kernels that pack responses, and the orders of their input. Plain C++, for
// the code that starts them. All addresses are the device's.
//
// At every point of the ring, a pack subtracts from a query's products a sum over the packing
// table's words times bodies of the query's key (src/arithmetic/packing_table.h). For all packs and
// a batch of queries, this is a product of matrices modulo the packing modulus. Its dimension K
// consists of three segments, one for each digit, of 1024 powers each. Power e stands for the
// switch to the automorphism with that power. There are 1023 of them, and the last is zero. Both
// factors are cut into bytes, four limbs a word.
#pragma once

#include <cstdint>

#include "cuda/packing/kernels/ntt_args.h"
#include "src/arithmetic/packing_table.h"
#include "src/arithmetic/ring/gadget.h"
#include "src/arithmetic/ring/packing_keys.h"
#include "src/arithmetic/ring/ring_dimension.h"

namespace blindfuse {

constexpr uint32_t kWordLimbs = 4;

// Of m16n8k32: queries are its rows, packs its columns, powers what it adds up over.
constexpr uint32_t kQueriesInTile = 16;
constexpr uint32_t kPacksInTile = 8;
constexpr uint32_t kStepPowers = 32;

constexpr uint32_t kSegmentPowers = ring::kOrbit;
constexpr uint32_t kSegments = ring::kDigits;
constexpr uint32_t kSegmentSteps = kSegmentPowers / kStepPowers;
constexpr uint32_t kSumSteps = kSegments * kSegmentSteps;

// Of the switch that a power below kKeySwitches stands for.
constexpr uint32_t key_switch_number(uint32_t power) {
  return static_cast<uint32_t>(kKeySwitches - 1) - power;
}

// Tables as the tensor cores take them: for every point the tiles of packs, for every tile its
// steps, 1 KB each. Of a step, the first half has limbs 0 and 1, the second 2 and 3: 16 bytes for
// each lane, which are powers 4 t .. 4 t + 3 and 16 + 4 t .. 16 + 4 t + 3 of the one limb and then
// the same of the other, for pack g of the tile (g = lane / 4, t = lane % 4). Zero where there is
// no pack.
constexpr uint32_t kStepBytes = kStepPowers * kPacksInTile * kWordLimbs;
constexpr uint32_t kHalfStepBytes = kStepBytes / 2;
constexpr uint64_t kTileBytes = uint64_t{kSumSteps} * kStepBytes;  // of one point

constexpr uint32_t pack_tiles(uint32_t pack_count) {
  return (pack_count + kPacksInTile - 1) / kPacksInTile;
}
constexpr uint64_t tile_place(uint32_t point, uint32_t tile, uint32_t pack_count) {
  return (uint64_t{point} * pack_tiles(pack_count) + tile) * kTileBytes;
}
constexpr uint64_t tables_bytes(uint32_t pack_count) {
  return tile_place(kRingWords, 0, pack_count);
}

// Brings groups of points of one pack's table into that order. Only bytes of this pack are written.
struct CutTableArgs {
  const uint32_t* words;  // groups as src/arithmetic/packing_table.h has them, one after another
  uint32_t first_group;
  uint32_t pack;
  uint32_t pack_count;
  uint8_t* tables;  // tables_bytes(pack_count), 16-byte aligned
};

// Bodies of the key as bytes, so that any window of any half can be read four bytes at a time: a
// plane for each limb of each half of each digit, in four copies. Byte i of copy r is the
// limb of the word at place (i + r) % 1024 of the half: what begins at i + r begins at a multiple
// of four in one of them.
//
// Windows are taken at multiples of 32; after the 1024 bytes the first ones are repeated, as far as
// a window reaches.
constexpr uint32_t kPlaneCopies = 4;
constexpr uint32_t kWindowBytes = 160;
constexpr uint32_t kPlaneBytes = kSegmentPowers - 32 + kWindowBytes;
static_assert(kPlaneBytes % 16 == 0, "windows are copied by 16 bytes");

constexpr uint32_t plane_place(uint32_t digit, uint32_t half, uint32_t limb, uint32_t copy) {
  return (((digit * 2 + half) * kWordLimbs + limb) * kPlaneCopies + copy) * kPlaneBytes;
}
constexpr uint32_t kQueryPlaneBytes = plane_place(ring::kDigits, 0, 0, 0);

struct CutKeysArgs {
  const uint32_t* keys;  // ring::kKeyWords of each query
  uint64_t key_pitch;    // words from one query's to the next one's
  uint8_t* planes;       // kQueryPlaneBytes for each query, 16-byte aligned
};

// A block sums at eight points that have the same place modulo 4 and lie in the same 32: those of a
// set are first_point(set) + 4 j, j < 8.
constexpr uint32_t kSetPoints = 8;
constexpr uint32_t kPointSets = kRingWords / kSetPoints;
constexpr uint32_t first_point(uint32_t set) { return set / 4 * 32 + set % 4; }

// sums[(q * pack_count + p) * kRingWords + m] = the sum at point m of query q and pack p, modulo
// the packing modulus.
struct SumArgs {
  const uint8_t* tables;
  const uint8_t* planes;
  uint32_t pack_count;
  uint32_t query_count;
  uint32_t first_set;   // of points, for the grid's first block
  uint32_t first_tile;  // of packs
  uint32_t* sums;
};

// Computes packed responses from sums and products.
struct FinishArgs {
  NttView ring;
  const uint32_t* sums;
  const uint32_t* products;  // those of query q from q * product_pitch on
  uint64_t product_pitch;
  uint32_t column_count;
  uint32_t pack_count;
  uint32_t bits;
  uint32_t* responses;  // pack p of query q begins at word q * response_pitch + p * 32 * bits
  uint64_t response_pitch;
};

}  // namespace blindfuse
