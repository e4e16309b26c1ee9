// The public matrix of packed responses, cut into limbs as the products take them: with it as 2048
// queries, one for each coefficient, products are the hint polynomials
// (host/cpu/packing/hint_polynomials.h).
//
// h = sum over blocks j of a_j D_j(1/X) modulo X^2048 + 1, so that byte k of a block counts for
// coefficient i what X^i has in a_j X^-k: a_j[i + k], or -a_j[i + k - 2048], as X^2048 is -1.
//
// Roofline: writes 4 bytes for every word of a matrix of 2048 x R, and reads them from the nearest
// cache: a block's 2048 words serve 2048 rows of limbs. Napkin: 16.8 MB a block, 5 us at 3.35 TB/s,
// compared with the 5.5e11 multiply-adds of bytes that 32,768 columns take with it, 0.6 ms at 990
// T/s. Unmeasured.
#pragma once

#include <cstdint>

#include "cuda/packing/kernels/table_args.h"
#include "cuda/scan/kernels/limbs.cuh"

namespace blindfuse {
// Every file that includes this has its own: the tests run the same kernels on the CPU.
namespace {

// blocks: 2048 words for each 2048 rows, as many as limbs.pitch holds. Grid: (limbs.pitch / 16
// threads, 2048 coefficients).
__global__ void cut_public_rows(const uint32_t* blocks, Limbs limbs) {
  const uint64_t row = (uint64_t{blockIdx.x} * blockDim.x + threadIdx.x) * kRowsPerThread;
  if (row >= limbs.pitch) return;
  const uint32_t* block = blocks + row / kRingWords * kRingWords;
  const uint32_t first = blockIdx.y + static_cast<uint32_t>(row % kRingWords);
  cut_sixteen(limbs, blockIdx.y, row, [&](int i) {
    const uint32_t place = first + static_cast<uint32_t>(i);
    const uint32_t word = __ldg(block + place % kRingWords);
    return place < kRingWords ? word : 0 - word;
  });
}

}  // namespace
}  // namespace blindfuse
