// Words into bytes, four by four.
#pragma once

#include <cstdint>

#include "cuda/device/intrinsics.cuh"

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

}  // namespace
}  // namespace blindfuse
