// Numbers of a few bits that lie one after another, the lowest bit first
// (src/arithmetic/bit_sequence.h).
#pragma once

#include <cstdint>

#include "cuda/packing/kernels/second_level_args.h"
#include "src/arithmetic/ring/modulus_switch.h"

namespace blindfuse {
// Every file that includes this has its own: the tests run the same kernels on the CPU.
namespace {

// 32 bits, from bit 32 w on, of numbers below 2^bits, each in a word of its own.
__device__ __forceinline__ uint32_t sequence_word(const uint32_t* numbers, uint32_t bits,
                                                  uint32_t w) {
  const uint32_t* next = numbers + 32 * w / bits;
  const uint32_t passed = 32 * w % bits;  // of the first number
  uint32_t word = *next++ >> passed;
  for (uint32_t have = bits - passed; have < 32; have += bits) word |= *next++ << have;
  return word;
}

// Number i of a query's. Reads no word that has none of its bits.
__device__ __forceinline__ uint32_t number_at(const NumberSequences& from, uint32_t query,
                                              uint64_t i) {
  const uint64_t bit = i * from.bits;
  const uint32_t* words = from.words + query * from.pitch + bit / 32;
  const uint32_t passed = static_cast<uint32_t>(bit % 32);
  uint32_t number = words[0] >> passed;
  if (passed + from.bits > 32) number |= words[1] << (32 - passed);
  return number & (0xffffffffu >> (32 - from.bits));
}

// The entry of the matrix of the first level's words.
__device__ __forceinline__ int32_t entry_at(const SecondLevelArgs& args, uint32_t query,
                                            uint32_t row, uint32_t column) {
  const uint64_t i = uint64_t{row} * args.column_count + column;
  if (i >= args.word_count) return 0;
  return static_cast<int32_t>(number_at(args.words, query, i)) -
         static_cast<int32_t>(1u << (args.words.bits - 1));
}

// A query's number for a row, modulo the packing modulus.
__device__ __forceinline__ uint32_t row_number(const SecondLevelArgs& args, uint32_t query,
                                               uint32_t row) {
  return ring::switch_to_q(number_at(args.numbers, query, row), args.numbers.bits);
}

}  // namespace
}  // namespace blindfuse
