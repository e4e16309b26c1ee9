// The LWE parameter sets. q = 2^32, secret and error uniform on {-1, 0, 1}, always.
#pragma once

#include <cstdint>
#include <span>
#include <string_view>

namespace blindfuse {

// A word's scale: a plaintext byte sits in the top 8 of its 32 bits (q / p = 2^24).
inline constexpr uint32_t kPlaintextShift = 24;

struct LweParams {
  std::string_view name;      // identity in the manifest
  uint32_t dimension;         // n
  std::string_view security;  // what it gives, in words
  std::string_view source;    // where that is estimated
};

// All sets, the default first.
std::span<const LweParams> lwe_params();

// The set of this name, or nullptr.
const LweParams* find_lwe_params(std::string_view name);

}  // namespace blindfuse
