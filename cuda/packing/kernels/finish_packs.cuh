// From sums at the points, and the products of a scan, to packed responses: the inverse NTT to
// coefficients, of which the first 1024 are taken from the products modulo Q, and the rounding.
//
// Roofline: 16 KB of sums and 4 KB of products in for a pack and query, 128 bytes for each bit of a
// response word out. That is 5 ns of an H200's memory (4.8 TB/s); some 5000 instructions of warps,
// most of them butterflies, are 5 ns for 132 multiprocessors that take four a clock at 1.75 GHz.
// The sums take 5.2 us a pack: as long as finishing a thousand queries. Unmeasured.
#pragma once

#include <cstdint>

#include "cuda/device/intrinsics.cuh"
#include "cuda/packing/kernels/ntt.cuh"
#include "cuda/packing/kernels/number_sequences.cuh"
#include "cuda/packing/kernels/packing_args.h"
#include "src/arithmetic/ring/modulus_switch.h"

namespace blindfuse {
// Every file that includes this has its own: the tests run the same kernels on the CPU.
namespace {

constexpr uint32_t kFinishSharedBytes = 4 * kRingWords;

// Grid: (packs, queries).
__global__ void __launch_bounds__(kNttThreads) finish_packs(FinishArgs args) {
  constexpr ring::PrimeField kField(ring::kPackingModulus);
  constexpr auto kColumns = static_cast<uint32_t>(kPackColumns);
  const uint32_t pack = blockIdx.x, query = blockIdx.y;
  auto* const polynomial = reinterpret_cast<uint32_t*>(dynamic_shared_memory());
#pragma unroll
  for (uint32_t point = threadIdx.x; point < kRingWords; point += kNttThreads) {
    polynomial[point] =
        kField.reduce(kSumOffset + args.sums[sum_place(query, pack, point, args.pack_count)]);
  }
  ntt_inverse(args.ring, polynomial);
  const uint32_t* products = args.products + query * args.product_pitch;
#pragma unroll 2
  for (uint32_t c = threadIdx.x; c < kColumns; c += kNttThreads) {
    const uint32_t column = pack * kColumns + c;
    polynomial[c] =
        column < args.column_count
            ? ring::switch_from_q(
                  kField.subtract(ring::switch_to_q(products[column]), polynomial[c]), args.bits)
            : 0;
  }
  __syncthreads();
  const uint32_t words = kColumns / 32 * args.bits;
  uint32_t* response = args.responses + query * args.response_pitch + uint64_t{pack} * words;
  for (uint32_t w = threadIdx.x; w < words; w += kNttThreads) {
    response[w] = sequence_word(polynomial, args.bits, w);
  }
}

}  // namespace
}  // namespace blindfuse
