// A pack's table and mask from its traces: the chain of key switches down the powers of 5, one
// after another. Word for word what PackingTableBuilder (host/cpu/packing) makes.
//
// A block has a pack: its mask and the three polynomials of digits stay in shared memory, and a key
// switch is an inverse NTT, digits, three NTTs, and products with the turned key masks. The table
// is written in its own order, 16 points (64 bytes) at a time.
//
// Napkin: a switch is 4 * 3520 instructions of a warp for transforms and some 6000 for digits and
// products, 5000 clocks of the four schedulers of one multiprocessor at best; with two warps for
// each and 24 barriers, perhaps twice that. 1023 of them are 10 million clocks, 6 ms at 1.7 GHz,
// for all packs at the same time: an H100 has a multiprocessor for each of 132. The tables of 32
// are 805 MB, so that bringing them to the host takes longer. Unmeasured.
#pragma once

#include <cstdint>

#include "cuda/packing/kernels/mask_digits.cuh"
#include "src/arithmetic/packing_table.h"

namespace blindfuse {
// Every file that includes this has its own: the tests run the same kernels on the CPU.
namespace {

// Takes the mask that lies at the points in the first of kDigits polynomials of shared memory, one
// of whose values each thread wrote at threadIdx.x + kNttThreads * i, to the next one, which is in
// its place then, written by the same threads: `next` and what the digits make of the key's masks.
// The digits go to the pack's table.
__device__ __forceinline__ void apply_key_switch(const TableArgs& args, uint32_t number,
                                                 const uint32_t* next, uint32_t* table,
                                                 uint32_t* polynomials) {
  const ring::PrimeField& field = args.ring.field;
  take_digits(args.ring, polynomials);
  const ring::Automorphism switched_to = key_switch_to(number);
#pragma unroll
  for (uint32_t i = 0; i < kNttValues; ++i) {
    const uint32_t point = threadIdx.x + kNttThreads * i;
    const uint32_t from = rotated_point(switched_to, point);
    uint32_t* const to =
        table + table_place(point / kPointsTogether, number, 0) + point % kPointsTogether;
    uint32_t sum = next[point];
#pragma unroll
    for (uint32_t k = 0; k < kDigitCount; ++k) {
      const uint32_t value = polynomials[k * kRingWords + point];
      to[k * kPointsTogether] = value;
      sum = field.add(sum, field.multiply(value, __ldg(args.key_masks + k * kRingWords + from)));
    }
    polynomials[point] = sum;
  }
}

// The chain, and the mask's coefficients. Grid: (packs); kKeySwitchSharedBytes.
__global__ void __launch_bounds__(kNttThreads) key_switch_down(TableArgs args) {
  uint32_t* const polynomials = shared_polynomials();
  const uint32_t pack = blockIdx.x;
  const uint32_t* trace =
      args.squares + (uint64_t{pack} * kOrbitWords + kOrbitWords - 1) * kRingWords;
  uint32_t* const table = args.tables + pack * kTableWords;
#pragma unroll
  for (uint32_t i = 0; i < kNttValues; ++i) {
    const uint32_t point = threadIdx.x + kNttThreads * i;
    polynomials[point] = trace[point];
  }
  for (uint32_t number = 0; number < args.key_switch_count; ++number) {
    trace -= kRingWords;
    apply_key_switch(args, number, trace, table, polynomials);
  }
  ntt_inverse(args.ring, polynomials);
#pragma unroll
  for (uint32_t i = 0; i < kNttValues; ++i) {
    const uint32_t place = threadIdx.x + kNttThreads * i;
    args.masks[pack * kRingWords + place] = polynomials[place];
  }
}

}  // namespace
}  // namespace blindfuse
