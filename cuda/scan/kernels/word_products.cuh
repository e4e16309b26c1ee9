// Products modulo 2^32: the epilogue of a scan.
//
// A product's kernel has, for a query and a column, four sums over rows, one for each limb of the
// query's words. A template parameter, the epilogue, makes results of them: this is one epilogue,
// and cuda/packing/kernels/point_sums.cuh is the other. The main loops are the same for all. An
// epilogue has
//
//   Args, Result   ProductArgs<Result>
//   kColumns       the columns of which it makes one result together: the kernels' columns are a
//                  multiple of them
//   combine(), sum_over_warp()   for scan_dp4a: a result from the sums of kColumns columns, of
//                  which number s has the limbs l of columns i with l + i = s; and the sum of all
//                  lanes' results
//   add()          adds to a result in memory
//   add_mma()      adds the sums of a warp of scan_mma to the results of its columns, of which
//                  there are `columns` from first_column on
//   add_wgmma()    the same for scan_wgmma
#pragma once

#include <cstdint>

#include "cuda/scan/kernels/limbs.cuh"

namespace blindfuse {
// Every file that includes this has its own: the tests run the same kernels on the CPU.
namespace {

struct WordProducts {
  using Args = ScanArgs;
  using Result = uint32_t;
  static constexpr uint32_t kColumns = 1;

  static __device__ __forceinline__ uint32_t combine(const int32_t (&sums)[4]) {
    return combine_limbs(sums[0], sums[1], sums[2], sums[3]);
  }
  static __device__ __forceinline__ uint32_t sum_over_warp(uint32_t product) {
    return __reduce_add_sync(0xffffffffu, product);
  }
  static __device__ __forceinline__ void add(uint32_t* product, uint32_t summand) {
    atomicAdd(product, summand);
  }

  // A lane has, of two columns, limbs 0 and 2 or limbs 1 and 3 (limb_row()), the lane four further
  // on or back the others of the same query. Each of the two makes the product of one column: a
  // warp adds to eight neighbouring columns of four queries.
  template <uint32_t kFours, uint32_t kEights>
  static __device__ __forceinline__ void add_mma(const int32_t (&sums)[kFours][kEights][4],
                                                 const ScanArgs& args, uint32_t first_column,
                                                 uint32_t columns, uint32_t lane) {
    const bool is_odd = lane / 4 % 2 != 0;
    const uint32_t shift = is_odd ? 8 : 0;
#pragma unroll
    for (uint32_t m = 0; m < kFours; ++m) {
      const uint32_t q = m * kQueriesInFour + lane / 8;
#pragma unroll
      for (uint32_t n = 0; n < kEights; ++n) {
        const int32_t(&s)[4] = sums[m][n];
        const uint32_t first = two_limbs(s[0], s[2]) << shift;
        const uint32_t second = two_limbs(s[1], s[3]) << shift;
        const uint32_t others = __shfl_xor_sync(0xffffffffu, is_odd ? first : second, 4);
        const uint32_t of_warp = n * 8 + lane % 4 * 2 + (is_odd ? 1 : 0);
        const uint32_t column = first_column + of_warp;
        if (q < args.query_count && of_warp < columns && column < args.column_count) {
          add(args.products + q * args.product_pitch + column, (is_odd ? second : first) + others);
        }
      }
    }
  }

  // Adds the sums of kLimbRows / 4 queries.
  template <int kLimbRows>
  static __device__ __forceinline__ void add_wgmma(const int32_t (&sums)[kLimbRows / 2],
                                                   const ScanArgs& args, uint32_t first_column,
                                                   uint32_t columns, uint32_t lane) {
#pragma unroll
    for (int four = 0; four < kLimbRows / 16; ++four) {
#pragma unroll
      for (int i = 0; i < 2; ++i) {
        const int low = 8 * four + 2 * i;
        add_column(args, four, first_column, columns, static_cast<uint32_t>(i), lane, &sums[low],
                   &sums[low + 4]);
      }
    }
  }

  // Adds the sums of query lane % 4 of a four to the product of the lane's k-th column, where limbs
  // are columns of the tensor cores' product. low and high are its lower and its upper two limbs.
  static __device__ __forceinline__ void add_column(const ScanArgs& args, int four, uint32_t first,
                                                    uint32_t columns, uint32_t k, uint32_t lane,
                                                    const int32_t* low, const int32_t* high) {
    const uint32_t q = static_cast<uint32_t>(four) * kQueriesInFour + lane % 4;
    const uint32_t of_warp = k * 8 + lane / 4;
    const uint32_t column = first + of_warp;
    if (q < args.query_count && of_warp < columns && column < args.column_count) {
      add(args.products + q * args.product_pitch + column,
          combine_limbs(low[0], low[1], high[0], high[1]));
    }
  }

 private:
  // Limbs l and l + 2 of a product, above limb l.
  static __device__ __forceinline__ uint32_t two_limbs(int32_t lower, int32_t upper) {
    return static_cast<uint32_t>(lower) + (static_cast<uint32_t>(upper) << 16);
  }
};

}  // namespace
}  // namespace blindfuse
