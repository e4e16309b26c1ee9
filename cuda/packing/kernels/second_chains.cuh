// The second level's responses from traces, products and keys: for each pack of a query's row, the
// chain of key switches down the powers of 5, and what is sent of it. Word for word what
// SecondLevelPacker (host/cpu/packing) makes, lowered.
//
// A block has a pack of a query. As in key_switch_down (key_switch_chains.cuh), its mask and the
// three polynomials of digits are in shared memory. No table is written: the digits are multiplied
// with the query's key, too, and what that adds up to stays in registers.
//
// Napkin: a switch is 5000 clocks of one multiprocessor at best, for transforms, digits and three
// products a point, and three more are 2048 * 3 * 20 / 32 / 4 = 1000 clocks. Two warps for each
// scheduler and 24 barriers make perhaps twice as many of them: 1023 switches are 12 million
// clocks, 7 ms at 1.7 GHz, for as many queries at the same time as there are multiprocessors. A
// multiprocessor has room for several blocks, which wait for each other's barriers. With a short
// key of order 64 it is 0.4 ms. Unmeasured.
#pragma once

#include <cstdint>

#include "cuda/packing/kernels/mask_digits.cuh"
#include "cuda/packing/kernels/number_sequences.cuh"
#include "cuda/packing/kernels/second_traces.cuh"

namespace blindfuse {
// Every file that includes this has its own: the tests run the same kernels on the CPU.
namespace {

// Takes the mask in shared memory, at the points, to the next one. `taken`, of the thread's points:
// what the digits make of the query's key is added.
__device__ __forceinline__ void switch_row(const SecondLevelArgs& args, const uint32_t* squares,
                                           const uint32_t* key, const ring::Automorphism& to,
                                           uint32_t* polynomials, uint32_t (&taken)[kNttValues]) {
  constexpr ring::PrimeField kField(ring::kPackingModulus);
  // They come while digits are made.
  uint32_t next[kNttValues];
#pragma unroll
  for (uint32_t i = 0; i < kNttValues; ++i) {
    next[i] = trace_word(squares, to, threadIdx.x + kNttThreads * i);
  }
  take_digits(args.ring, polynomials);
#pragma unroll
  for (uint32_t i = 0; i < kNttValues; ++i) {
    const uint32_t point = threadIdx.x + kNttThreads * i;
    const uint32_t from = rotated_point(to, point);
#pragma unroll
    for (uint32_t k = 0; k < kDigitCount; ++k) {
      const uint32_t value = polynomials[k * kRingWords + point];
      const uint32_t mask = __ldg(args.key_masks + k * kRingWords + from);
      const uint32_t body = __ldg(key + k * kRingWords + from);
      next[i] = kField.add(next[i], kField.multiply(value, mask));
      taken[i] = kField.add(taken[i], kField.multiply(value, body));
    }
    polynomials[point] = next[i];
  }
}

// Writes `count` numbers below 2^bits, a multiple of 32 of them, as a bit sequence.
__device__ __forceinline__ void write_numbers(const uint32_t* numbers, uint32_t count,
                                              uint32_t bits, uint32_t* to) {
  const uint32_t words = count / 32 * bits;
  for (uint32_t w = threadIdx.x; w < words; w += kNttThreads) {
    to[w] = sequence_word(numbers, bits, w);
  }
}

// Grid: (packs, queries); kKeySwitchSharedBytes.
__global__ void __launch_bounds__(kNttThreads) second_chains(SecondLevelArgs args) {
  constexpr ring::PrimeField kField(ring::kPackingModulus);
  const uint32_t pack = blockIdx.x, query = blockIdx.y;
  uint32_t* const polynomials = shared_polynomials();
  const uint32_t* squares = square_row(args.squares, query * args.pack_count + pack, 0);
  const uint32_t* key = args.keys + query * args.key_pitch;
  uint32_t taken[kNttValues] = {};
#pragma unroll
  for (uint32_t i = 0; i < kNttValues; ++i) {
    const uint32_t point = threadIdx.x + kNttThreads * i;
    polynomials[point] =
        trace_word(squares, {uint64_t{args.key_switch_count} * args.power_step}, point);
  }
#pragma unroll 1
  for (uint32_t left = args.key_switch_count; left > 0; --left) {
    switch_row(args, squares, key, {uint64_t{left - 1} * args.power_step}, polynomials, taken);
  }
  uint32_t* const body = polynomials + kRingWords;
#pragma unroll
  for (uint32_t i = 0; i < kNttValues; ++i) body[threadIdx.x + kNttThreads * i] = taken[i];
  ntt_inverse(args.ring, polynomials);
  ntt_inverse(args.ring, body);
#pragma unroll
  for (uint32_t i = 0; i < kNttValues; ++i) {
    const uint32_t place = threadIdx.x + kNttThreads * i;
    polynomials[place] = ring::switch_from_q(polynomials[place], args.mask_bits);
    const uint32_t column = pack * kOrbitWords + place;
    if (place >= kOrbitWords) continue;
    body[place] =
        column < args.column_count
            ? ring::switch_from_q(
                  kField.subtract(args.products[uint64_t{query} * args.column_count + column],
                                  body[place]),
                  args.response_bits)
            : 0;
  }
  __syncthreads();
  uint32_t* const response =
      args.responses +
      query * second_response_words(args.pack_count, args.mask_bits, args.response_bits);
  write_numbers(polynomials, kRingWords, args.mask_bits,
                response + pack * (kRingWords / 32 * args.mask_bits));
  write_numbers(body, kOrbitWords, args.response_bits,
                response + args.pack_count * (kRingWords / 32 * args.mask_bits) +
                    pack * (kOrbitWords / 32 * args.response_bits));
}

}  // namespace
}  // namespace blindfuse
