// Products to responses: each product rounded to its upper bits (src/arithmetic/bit_sequence.h),
// the lowest bit first.
//
// Roofline: C words a query in, C bits / 32 out; negligible compared with a scan of R C bytes.
#pragma once

#include <cstdint>

#include "cuda/scan/kernels/scan_args.h"
#include "src/arithmetic/bit_sequence.h"

namespace blindfuse {
// Every file that includes this has its own: the tests run the same kernels on the CPU.
namespace {

// A thread makes `bits` words of 32 columns. Grid: (columns / 32 threads, queries).
__global__ void round_products(RoundArgs args) {
  const uint32_t group = blockIdx.x * blockDim.x + threadIdx.x;
  const uint32_t first = group * 32;
  if (first >= args.column_count) return;
  const uint32_t* products = args.products + blockIdx.y * args.product_pitch + first;
  uint32_t* response =
      args.responses + blockIdx.y * args.response_pitch + uint64_t{group} * args.bits;
  uint64_t pending = 0;
  uint32_t pending_bits = 0;
  for (uint32_t i = 0; i < 32; ++i) {
    const uint32_t word = first + i < args.column_count ? round_word(products[i], args.bits) : 0;
    pending |= uint64_t{word} << pending_bits;
    pending_bits += args.bits;
    if (pending_bits >= 32) {
      *response++ = static_cast<uint32_t>(pending);
      pending >>= 32;
      pending_bits -= 32;
    }
  }
}

}  // namespace
}  // namespace blindfuse
