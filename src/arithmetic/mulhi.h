// The upper half of a 128-bit product: maps a uniform u64 onto 0 .. n-1 without division.
#pragma once

#include <cstdint>

namespace blindfuse {

constexpr uint64_t mulhi(uint64_t a, uint64_t b) {
  __extension__ using Wide = unsigned __int128;  // not ISO C++, but in every compiler we build with
  return static_cast<uint64_t>((static_cast<Wide>(a) * b) >> 64);
}

}  // namespace blindfuse
