// The arguments of the kernels that pack responses, and the orders of their input. Plain C++, for
// the code that starts them. All addresses are the device's.
//
// At every point of the ring, a pack subtracts from a query's products a sum over the packing
// table's words times bodies of the query's key (src/arithmetic/packing_table.h). Points come in
// two halves of 1024. At point m of a half, the word of power e, which stands for the switch to the
// automorphism with that power, is multiplied with the body at place (m + e) % 1024 of the half. So
// a point's words are kept by that place, not by their power: then all points of a half have the
// same bodies in the same order, and the sums are, for each half, the product of a matrix with
// vectors, modulo the packing modulus.
//
// The kernels of a scan compute it. Its rows are the digits' 1024 places each; its columns are the
// four limbs of each point's words; its queries' words are the bodies of the key. Words on both
// sides are cut into signed bytes, as the scan's queries are, after they have been replaced by
// numbers that are equal modulo the packing modulus and have such limbs (balanced_word()).
#pragma once

#include <cstdint>

#include "cuda/packing/kernels/ntt_args.h"
#include "cuda/scan/kernels/scan_args.h"
#include "src/arithmetic/packing_table.h"
#include "src/arithmetic/ring/gadget.h"
#include "src/arithmetic/ring/packing_key_format.h"
#include "src/arithmetic/ring/prime_field.h"
#include "src/arithmetic/ring/ring_dimension.h"

namespace blindfuse {

constexpr uint32_t kWordLimbs = 4;
constexpr uint32_t kHalfPoints = ring::kOrbit;
constexpr uint32_t kRingHalves = kRingWords / kHalfPoints;
// Of the product, for each digit one for each place. 1024 powers are one more than there are
// switches: the last one's words are zero.
constexpr uint32_t kSumRows = ring::kDigits * kHalfPoints;
static_assert(kHalfPoints == kKeySwitches + 1);
static_assert(kSumRows % kStepRows == 0, "rows come in whole steps");

// Of the switch that a power below kKeySwitches stands for.
constexpr uint32_t key_switch_number(uint32_t power) {
  return static_cast<uint32_t>(kKeySwitches - 1) - power;
}

// 2^32 modulo the packing modulus: what is taken from 2^32 where the modulus is.
constexpr uint32_t kTwo32 = static_cast<uint32_t>((uint64_t{1} << 32) - ring::kPackingModulus);

// Four signed limbs have the numbers from -0x80808080 to 0x7f7f7f7f: the limbs of `word` as a scan
// cuts it (cuda/scan/kernels/scan_args.h) are those of the one among them that is equal to it
// modulo 2^32. A word above is replaced by the word less the modulus, which is among them: so what
// the limbs stand for is equal to the word modulo the packing modulus, too. Any word will do.
constexpr uint32_t balanced_word(uint32_t word) { return word > 0x7f7f7f7f ? word + kTwo32 : word; }
static_assert(ring::kPackingModulus - 0x7f7f7f80 <= 0x80808080);

// Columns of a half, kSumRows bytes each: pack after pack, point after point, limb after limb. The
// second half's come after the first one's.
constexpr uint64_t half_columns(uint32_t pack_count) {
  return uint64_t{pack_count} * kHalfPoints * kWordLimbs;
}
// The first of the four columns of a point, of both halves' 2048.
constexpr uint64_t point_column(uint32_t point, uint32_t pack, uint32_t pack_count) {
  return point / kHalfPoints * half_columns(pack_count) +
         (uint64_t{pack} * kHalfPoints + point % kHalfPoints) * kWordLimbs;
}
constexpr uint64_t tables_bytes(uint32_t pack_count) {
  return kRingHalves * half_columns(pack_count) * kSumRows;  // 25,165,824 a pack
}

// Brings groups of points of one pack's table into that order. Only bytes of this pack are written.
struct CutTableArgs {
  const uint32_t* words;  // groups as src/arithmetic/packing_table.h has them, one after another
  uint32_t first_group;
  uint32_t pack;
  uint32_t pack_count;
  int8_t* columns;  // tables_bytes(pack_count), 16-byte aligned
};

// Cuts the bodies of keys into limbs: those of the second half half_bytes after the first one's.
struct CutKeysArgs {
  const uint32_t* keys;  // ring::kKeyWords of each query
  uint64_t key_pitch;    // words from one query's to the next one's
  Limbs limbs;           // with the pitch kSumRows
  uint64_t half_bytes;
};

// products[q * product_pitch + i] += what is, modulo the packing modulus, the sum of query q at
// point i of the half's points of all packs: a signed number, modulo 2^64, whose absolute value is
// at most kSumMax.
using SumArgs = ProductArgs<uint64_t>;

// The sums of both halves.
struct PackSumsArgs {
  const int8_t* columns;
  uint32_t pack_count;
  Limbs limbs;  // of the first half, with the pitch kSumRows
  uint64_t half_bytes;
  uint32_t query_count;
  // sum_place() of them, and as many for each query. Zero where the sums are to be alone.
  uint64_t* sums;
};
constexpr uint64_t sum_place(uint32_t query, uint32_t pack, uint32_t point, uint32_t pack_count) {
  return (uint64_t{query} * kRingHalves + point / kHalfPoints) * pack_count * kHalfPoints +
         uint64_t{pack} * kHalfPoints + point % kHalfPoints;
}
constexpr SumArgs half_sums(const PackSumsArgs& all, uint32_t half) {
  const uint64_t columns = half_columns(all.pack_count);
  SumArgs args{};
  args.columns = all.columns + half * columns * kSumRows;
  args.column_pitch = kSumRows;
  args.column_count = static_cast<uint32_t>(columns);
  args.step_count = kSumRows / kStepRows;
  args.limbs = all.limbs.bytes + half * all.half_bytes;
  args.limb_pitch = kSumRows;
  args.query_count = all.query_count;
  args.products = all.sums + sum_place(0, 0, half * kHalfPoints, all.pack_count);
  args.product_pitch = sum_place(1, 0, 0, all.pack_count);
  return args;
}

// What a sum of signed bytes' products counts for that is made of limbs whose numbers add up to
// `number`, 0 .. 6: 2^(8 number), modulo the packing modulus from 2^32 on.
constexpr int32_t sum_weight(uint32_t number) {
  return number < kWordLimbs ? int32_t{1} << 8 * number
                             : static_cast<int32_t>(kTwo32 << 8 * (number - kWordLimbs));
}

// Products of signed bytes are at most 2^14.
constexpr uint64_t largest_sum() {
  uint64_t largest = 0;
  for (uint32_t i = 0; i < kWordLimbs * kWordLimbs; ++i) {
    const auto weight = static_cast<uint64_t>(sum_weight(i / kWordLimbs + i % kWordLimbs));
    largest += (uint64_t{kSumRows} << 14) * weight;
  }
  return largest;
}
constexpr uint64_t kSumMax = largest_sum();
// A multiple of the packing modulus that makes every sum positive.
constexpr uint64_t kSumOffset = uint64_t{ring::kPackingModulus} << 24;
static_assert(kSumMax <= kSumOffset);
static_assert((uint64_t{kTwo32} << 16) < (uint64_t{1} << 31), "weights are positive");

// Computes packed responses from sums and products.
struct FinishArgs {
  NttView ring;
  const uint64_t* sums;      // sum_place()
  const uint32_t* products;  // those of query q from q * product_pitch on
  uint64_t product_pitch;
  uint32_t column_count;
  uint32_t pack_count;
  uint32_t bits;
  uint32_t* responses;  // pack p of query q begins at word q * response_pitch + p * 32 * bits
  uint64_t response_pitch;
};

}  // namespace blindfuse
