// Cuts query words into limbs (cuda/scan/kernels/scan_args.h), and combines sums of limbs.
#pragma once

#include <cstdint>

#include "cuda/device/intrinsics.cuh"
#include "cuda/scan/kernels/scan_args.h"

namespace blindfuse {
// Every file that includes this has its own: the tests run the same kernels on the CPU.
namespace {

// Byte l of word i becomes byte i of the l-th result.
__device__ __forceinline__ void transpose_bytes(const uint32_t (&words)[4], uint32_t (&limbs)[4]) {
  const uint32_t low01 = __byte_perm(words[0], words[1], 0x5140);  // b0 of both, b1 of both
  const uint32_t low23 = __byte_perm(words[2], words[3], 0x5140);
  const uint32_t high01 = __byte_perm(words[0], words[1], 0x7362);  // b2 of both, b3 of both
  const uint32_t high23 = __byte_perm(words[2], words[3], 0x7362);
  limbs[0] = __byte_perm(low01, low23, 0x5410);
  limbs[1] = __byte_perm(low01, low23, 0x7632);
  limbs[2] = __byte_perm(high01, high23, 0x5410);
  limbs[3] = __byte_perm(high01, high23, 0x7632);
}

// Rows that one thread cuts: 16 bytes of each limb row.
constexpr uint32_t kRowsPerThread = 16;

// Four words' limbs l are the bytes of the l-th result.
__device__ __forceinline__ void cut_four(const uint32_t (&words)[4], uint32_t (&limbs)[4]) {
  uint32_t w[4];
#pragma unroll
  for (int i = 0; i < 4; ++i) w[i] = (words[i] + 0x80808080u) ^ 0x80808080u;
  transpose_bytes(w, limbs);
}

// Four sums of limbs make a product.
__device__ __forceinline__ uint32_t combine_limbs(int32_t s0, int32_t s1, int32_t s2, int32_t s3) {
  return static_cast<uint32_t>(s0) + (static_cast<uint32_t>(s1) << 8) +
         (static_cast<uint32_t>(s2) << 16) + (static_cast<uint32_t>(s3) << 24);
}

// Cuts word(i) for i = 0 .. 15 into the four limb rows of query q, from row `row` on.
template <typename Word>
__device__ __forceinline__ void cut_sixteen(const Limbs& limbs, uint32_t q, uint64_t row,
                                            const Word& word) {
  uint32_t cut[4][4];
#pragma unroll
  for (int i = 0; i < 4; ++i) {
    const uint32_t words[4] = {word(4 * i), word(4 * i + 1), word(4 * i + 2), word(4 * i + 3)};
    cut_four(words, cut[i]);
  }
  if (limbs.order == LimbOrder::kWgmma) {
    const uint64_t block = row / 64 * 64 + row % 64 / 4;
#pragma unroll
    for (int l = 0; l < 4; ++l) {
#pragma unroll
      for (int j = 0; j < 4; ++j) {
        *reinterpret_cast<uint32_t*>(limbs.bytes +
                                     limb_row(q, static_cast<uint32_t>(l)) * limbs.pitch + block +
                                     static_cast<uint32_t>(16 * j)) = cut[j][l];
      }
    }
    return;
  }
  if (limbs.order == LimbOrder::kMma) {
    int8_t* const four =
        limbs.bytes + limb_row(q, 0) / kLimbRowsInFour * kLimbRowsInFour * limbs.pitch;
#pragma unroll
    for (uint32_t low = 0; low < 2; ++low) {
#pragma unroll
      for (uint32_t i = 0; i < 2; ++i) {
        // Limbs low and low + 2 are eight rows apart: one lane's.
        *reinterpret_cast<uint4*>(four + fragment_offset(limb_row(q, low), row + 8 * i)) =
            make_uint4(cut[2 * i][low], cut[2 * i][low + 2], cut[2 * i + 1][low],
                       cut[2 * i + 1][low + 2]);
      }
    }
    return;
  }
#pragma unroll
  for (int l = 0; l < 4; ++l) {
    *reinterpret_cast<uint4*>(limbs.bytes + limb_row(q, static_cast<uint32_t>(l)) * limbs.pitch +
                              row) = make_uint4(cut[0][l], cut[1][l], cut[2][l], cut[3][l]);
  }
}

}  // namespace
}  // namespace blindfuse
