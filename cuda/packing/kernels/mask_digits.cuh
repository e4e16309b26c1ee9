// The digits of a mask, with which a key switch multiplies the key.
#pragma once

#include <cstdint>

#include "cuda/packing/kernels/squares.cuh"
#include "src/arithmetic/ring/gadget.h"

namespace blindfuse {
// Every file that includes this has its own: the tests run the same kernels on the CPU.
namespace {

constexpr auto kDigitCount = static_cast<uint32_t>(ring::kDigits);
constexpr uint32_t kKeySwitchSharedBytes = kDigitCount * kRowSharedBytes;

// Takes the mask that lies at the points in the first of kDigits polynomials of shared memory to
// its digits, polynomials at the points, too. Any thread may have written the mask; afterwards all
// threads may read the digits.
__device__ __forceinline__ void take_digits(const NttView& ring, uint32_t* polynomials) {
  ntt_inverse(ring, polynomials);
#pragma unroll
  for (uint32_t i = 0; i < kNttValues; ++i) {
    uint32_t* const place = polynomials + threadIdx.x + kNttThreads * i;
    const auto found = ring::decompose(*place, ring.field);
#pragma unroll
    for (uint32_t k = 0; k < kDigitCount; ++k) {
      place[k * kRingWords] = ring.field.reduce_signed(found[k]);
    }
  }
#pragma unroll 1
  for (uint32_t k = 0; k < kDigitCount; ++k) ntt_forward(ring, polynomials + k * kRingWords);
}

}  // namespace
}  // namespace blindfuse
