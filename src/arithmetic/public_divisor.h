// Division of a secret number by a public one. A processor's division takes a time that depends on
// its operands, and so does WebAssembly's; a multiplication and shifts take the same time for all.
#pragma once

#include <algorithm>
#include <bit>
#include <cstdint>

namespace blindfuse {

// The upper half of a 128-bit product: maps a uniform u64 onto 0 .. n-1 without division.
constexpr uint64_t mulhi(uint64_t a, uint64_t b) {
  __extension__ using Wide = unsigned __int128;  // not ISO C++, but in every compiler we build with
  return static_cast<uint64_t>((static_cast<Wide>(a) * b) >> 64);
}

// A divisor d, 1 .. 2^32 - 1, with its reciprocal. Quotients and remainders are exact for every
// numerator n of 64 bits.
//
// Granlund and Montgomery, "Division by Invariant Integers using Multiplication" (PLDI 1994),
// figure 4.1, with N = 64: for l = ceil(log2 d), m = floor(2^64 (2^l - d) / d) + 1 and t =
// floor(m n / 2^64),
//
//   floor(n / d) = floor((t + floor((n - t) / 2^min(l, 1))) / 2^max(l - 1, 0))
//
// Making it divides, by d, and takes a time that depends on d alone. mulhi() is one instruction, or
// in WebAssembly a function of the compiler's library, without branches.
class PublicDivisor {
 public:
  // divisor is not 0.
  constexpr explicit PublicDivisor(uint32_t divisor)
      : divisor_(divisor),
        multiplier_(multiplier(divisor)),
        first_shift_(std::min(log2_up(divisor), 1u)),
        second_shift_(log2_up(divisor) - first_shift_) {}

  constexpr uint64_t quotient(uint64_t n) const {
    const uint64_t t = mulhi(multiplier_, n);
    return (t + ((n - t) >> first_shift_)) >> second_shift_;
  }
  constexpr uint32_t remainder(uint64_t n) const {
    return static_cast<uint32_t>(n - quotient(n) * divisor_);
  }

 private:
  static constexpr unsigned log2_up(uint32_t divisor) {
    return static_cast<unsigned>(std::bit_width(divisor - 1));
  }
  // Divides in digits of 32 bits: 2^l - d is below d.
  static constexpr uint64_t multiplier(uint64_t divisor) {
    const uint64_t first = ((uint64_t{1} << log2_up(static_cast<uint32_t>(divisor))) - divisor)
                           << 32;
    const uint64_t second = (first % divisor) << 32;
    return ((first / divisor) << 32) + second / divisor + 1;
  }

  uint64_t divisor_;
  uint64_t multiplier_;  // m
  unsigned first_shift_;
  unsigned second_shift_;
};

}  // namespace blindfuse
