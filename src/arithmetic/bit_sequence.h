// Bit sequences: words rounded to their upper bits, one after another, the lowest bit first
// (docs/PROTOCOL.md, section 7).
#pragma once

#include <cstdint>
#include <span>

namespace blindfuse {

constexpr uint64_t bit_sequence_bytes(uint64_t count, uint32_t bits) {
  return (count * bits + 7) / 8;
}

// The nearest integer to word / 2^(32-bits), ties to even, modulo 2^bits; bits in 1..32.
//
// Ties to even keeps the mean of the error at zero. Rounding ties up would shift every word by 1/2
// on average, which a column of equal bytes adds up over all rows: 64 R in the worst case, past the
// noise bound at a hundred thousand rows.
constexpr uint32_t round_word(uint32_t word, uint32_t bits) {
  if (bits == 32) return word;
  const uint32_t shift = 32 - bits;
  // Half of a step, and a little less for an even number: it then carries only beyond the half.
  const uint64_t half = (uint64_t{1} << (shift - 1)) - 1 + (word >> shift & 1);
  return static_cast<uint32_t>((word + half) >> shift) & ((1u << bits) - 1);
}

constexpr uint32_t restore_word(uint32_t number, uint32_t bits) { return number << (32 - bits); }

// Rounds words and writes them; out has bit_sequence_bytes(words.size(), bits) bytes.
void write_bit_sequence(std::span<const uint32_t> words, uint32_t bits, std::span<uint8_t> out);

// Reads and restores the words first .. first + words.size() - 1 of a sequence. All of them must
// lie in the sequence.
void read_bit_sequence(std::span<const uint8_t> sequence, uint32_t bits, uint64_t first,
                       std::span<uint32_t> words);

// True if `sequence` has the form that write_bit_sequence gives to `count` words: the right length,
// and zeros in the unused bits of its last byte.
bool is_bit_sequence(std::span<const uint8_t> sequence, uint64_t count, uint32_t bits);

}  // namespace blindfuse
