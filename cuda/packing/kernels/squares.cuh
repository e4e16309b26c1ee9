// Polynomials in shared memory, and the rows of squares (cuda/packing/kernels/table_args.h) from
// which they come and to which they go.
#pragma once

#include <cstdint>

#include "cuda/packing/kernels/ntt.cuh"
#include "cuda/packing/kernels/table_args.h"
#include "src/arithmetic/ring/automorphism.h"

namespace blindfuse {
// Every file that includes this has its own: the tests run the same kernels on the CPU.
namespace {

constexpr uint32_t kRowSharedBytes = kRingWords * sizeof(uint32_t);

// The value of g's result at a point is that of its argument at another (ring::apply).
__device__ __forceinline__ uint32_t rotated_point(const ring::Automorphism& g, uint32_t point) {
  const uint32_t half = point & kOrbitWords;
  return half + (point + static_cast<uint32_t>(g.power)) % kOrbitWords;
}

__device__ __forceinline__ uint32_t* shared_polynomials() {
  return reinterpret_cast<uint32_t*>(dynamic_shared_memory());
}

__device__ __forceinline__ uint32_t* square_row(uint32_t* squares, uint32_t pack, uint32_t row) {
  return squares + (uint64_t{pack} * kOrbitWords + row) * kRingWords;
}

}  // namespace
}  // namespace blindfuse
