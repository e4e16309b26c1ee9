// Sums over packing tables, modulo the packing modulus: the epilogue of a scan's kernels
// (cuda/scan/kernels/word_products.cuh) when they multiply packing tables with keys
// (cuda/packing/kernels/packing_args.h).
//
// Four neighbouring columns are the limbs of one point's words. With the limbs of a query's words
// they make sixteen sums over rows. A point's sum has each of them with the weight of what it
// counts for, taken modulo the packing modulus, and is exact in 64 bits whatever the rows: it is
// taken modulo the packing modulus where it is read (finish_packs.cuh).
//
// All warps have as many columns as they can, as the columns are a multiple of 256.
//
// Napkin, on an H200 (132 multiprocessors, 1.75 GHz, 4.8 TB/s: 21 bytes a clock each): the tables'
// 25.2 MB a pack take 5.2 us; the kernels' own files have up to how many queries that is the limit.
// ChunkWalk cuts the 3,072 rows into two pieces or three, and each ends with an addition of 8 bytes
// for each query and point: 0.0013 to 0.002 bytes for each query and byte of the tables, as much as
// a scan adds to its products. Unmeasured.
#pragma once

#include <cstdint>

#include "cuda/packing/kernels/packing_args.h"
#include "cuda/scan/kernels/limbs.cuh"

namespace blindfuse {
// Every file that includes this has its own: the tests run the same kernels on the CPU.
namespace {

struct PointSums {
  using Args = SumArgs;
  using Result = uint64_t;
  static constexpr uint32_t kColumns = kWordLimbs;

  // Of the 16 rows of a thread: no two of its sums of 32 bits leave them, the first one or the
  // second one times 2^8.
  static __device__ __forceinline__ uint64_t combine(const int32_t (&sums)[7]) {
    static_assert(4 * kRowsPerThread * (1 << 14) * 257ULL < 1ULL << 31);
    return times(sums[0] + sums[1] * 256, sum_weight(0)) +
           times(sums[2] + sums[3] * 256, sum_weight(2)) +
           times(sums[4] + sums[5] * 256, sum_weight(4)) + times(sums[6], sum_weight(6));
  }

  // The lower 26 bits of each lane's, and the others, which are 22 and the sign: neither sum leaves
  // 32 bits.
  static __device__ __forceinline__ uint64_t sum_over_warp(uint64_t sum) {
    constexpr uint32_t kLow = 26;
    static_assert(kSumMax / kSumRows * kRowsPerThread < uint64_t{1} << (kLow + 22));
    const uint32_t low = __reduce_add_sync(0xffffffffu, static_cast<uint32_t>(sum) % (1u << kLow));
    const uint32_t high =
        __reduce_add_sync(0xffffffffu, static_cast<uint32_t>(static_cast<int64_t>(sum) >> kLow));
    return low + (static_cast<uint64_t>(int64_t{static_cast<int32_t>(high)}) << kLow);
  }

  static __device__ __forceinline__ void add(uint64_t* sum, uint64_t summand) {
    static_assert(sizeof(unsigned long long) == sizeof(uint64_t));
    atomicAdd(reinterpret_cast<unsigned long long*>(sum), summand);
  }

  // A lane has, of two neighbouring columns, limbs 0 and 2 or limbs 1 and 3 of a query
  // (limb_row()): sums that count for four neighbouring powers of 2^8. Four lanes together have a
  // point's sixteen. Each of them makes the sum at one of four points, so that a warp adds to eight
  // neighbouring points of four queries.
  template <uint32_t kFours>
  static __device__ __forceinline__ void add_mma(const int32_t (&sums)[kFours][4][4],
                                                 const SumArgs& args, uint32_t first_column,
                                                 uint32_t /*columns*/, uint32_t lane) {
    const uint32_t part = lane / 4 % 2 + lane % 2 * 2;
    const Weights weights(part);
#pragma unroll
    for (uint32_t m = 0; m < kFours; ++m) {
      uint64_t parts[4];
#pragma unroll
      for (uint32_t n = 0; n < 4; ++n) {
        const int32_t(&s)[4] = sums[m][n];
        parts[n] = weights.combine(s[0], s[1], s[2], s[3]);
      }
      const uint64_t sum = sum_of_four_lanes<1>(parts, part);
      add_to_point(args, m * kQueriesInFour + lane / 8,
                   first_column / kColumns + part * 2 + lane % 4 / 2, sum);
    }
  }

  // A lane has all limbs of a query and one column of a point. Four lanes together have its four
  // columns, of two points of two fours of queries. Each of them makes the sum of one.
  template <int kLimbRows>
  static __device__ __forceinline__ void add_wgmma(const int32_t (&sums)[kLimbRows / 2],
                                                   const SumArgs& args, uint32_t first_column,
                                                   uint32_t /*columns*/, uint32_t lane) {
    const uint32_t part = lane / 4 % 4;
    const Weights weights(part);
#pragma unroll
    for (uint32_t four = 0; four < kLimbRows / 16; four += 2) {
      uint64_t parts[4];
#pragma unroll
      for (uint32_t i = 0; i < 4; ++i) {
        const int32_t* const low = &sums[8 * (four + i / 2) + 2 * (i % 2)];
        parts[i] = weights.combine(low[0], low[1], low[4], low[5]);
      }
      const uint64_t sum = sum_of_four_lanes<8>(parts, part);
      add_to_point(args, (four + part / 2) * kQueriesInFour + lane % 4,
                   first_column / kColumns + part % 2 * 2 + lane / 16, sum);
    }
  }

 private:
  static __device__ __forceinline__ uint64_t times(int32_t sum, int32_t weight) {
    return static_cast<uint64_t>(int64_t{sum} * weight);
  }

  // What four sums count for, the first one for 2^(8 first).
  struct Weights {
    int32_t of_sums[4];

    __device__ __forceinline__ explicit Weights(uint32_t first) {
#pragma unroll
      for (uint32_t i = 0; i < 4; ++i) of_sums[i] = sum_weight(first + i);
    }
    __device__ __forceinline__ uint64_t combine(int32_t s0, int32_t s1, int32_t s2,
                                                int32_t s3) const {
      return times(s0, of_sums[0]) + times(s1, of_sums[1]) + times(s2, of_sums[2]) +
             times(s3, of_sums[3]);
    }
  };

  static __device__ __forceinline__ uint64_t exchanged(uint64_t value, int lanes) {
    const uint32_t low = __shfl_xor_sync(0xffffffffu, static_cast<uint32_t>(value), lanes);
    const uint32_t high = __shfl_xor_sync(0xffffffffu, static_cast<uint32_t>(value >> 32), lanes);
    return uint64_t{high} << 32 | low;
  }

  // The sum of parts[part] of the four lanes whose numbers differ from the lane's in no other bits
  // than 4 and kUpper. part: the lane's place among the four, its upper bit that of kUpper.
  template <int kUpper>
  static __device__ __forceinline__ uint64_t sum_of_four_lanes(const uint64_t (&parts)[4],
                                                               uint32_t part) {
    const bool is_upper = part >= 2, is_odd = part % 2 != 0;
    uint64_t two[2];
#pragma unroll
    for (uint32_t i = 0; i < 2; ++i) {
      two[i] = (is_upper ? parts[2 + i] : parts[i]) +
               exchanged(is_upper ? parts[i] : parts[2 + i], kUpper);
    }
    return (is_odd ? two[1] : two[0]) + exchanged(is_odd ? two[0] : two[1], 4);
  }

  static __device__ __forceinline__ void add_to_point(const SumArgs& args, uint32_t query,
                                                      uint32_t point, uint64_t sum) {
    if (query < args.query_count) add(args.products + query * args.product_pitch + point, sum);
  }
};

}  // namespace
}  // namespace blindfuse
