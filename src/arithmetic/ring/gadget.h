// Gadget decomposition: numbers modulo the packing modulus in signed digits, for key switching.
//
// Three digits of eight bits hold the upper 24 bits. The lower eight are rounded away. The noise is
// that of all four digits, since the rounding adds as much as the fourth digit would. Keys, packing
// tables and the work of packing are smaller by a quarter (docs/PARAMETERS.md, section 6).
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

#include "src/arithmetic/ring/prime_field.h"

namespace blindfuse::ring {

inline constexpr size_t kDigits = 3;
inline constexpr unsigned kDigitBits = 8;
inline constexpr unsigned kDroppedBits = 32 - kDigits * kDigitBits;

// The weight of digit k: 2^(kDroppedBits + 8 k).
constexpr uint32_t gadget(size_t k) { return uint32_t{1} << (kDroppedBits + kDigitBits * k); }

// Digits with |sum of digit k * gadget(k) - x| at most 2^(kDroppedBits - 1), modulo the modulus.
// All except the last are in -128 .. 127; the last is in -128 .. 128.
constexpr std::array<int32_t, kDigits> decompose(uint32_t x, const PrimeField& field) {
  // Halves are rounded up; shifts of signed numbers round down.
  int64_t rest = (field.centered(x) + (int64_t{1} << (kDroppedBits - 1))) >> kDroppedBits;
  std::array<int32_t, kDigits> found{};
  for (size_t k = 0; k + 1 < kDigits; ++k) {
    constexpr int64_t kHalf = 1 << (kDigitBits - 1);
    const int64_t next = (rest + kHalf) >> kDigitBits;
    found[k] = static_cast<int32_t>(rest - (next << kDigitBits));
    rest = next;
  }
  found.back() = static_cast<int32_t>(rest);
  return found;
}

}  // namespace blindfuse::ring
