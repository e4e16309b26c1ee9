// The packing keys that a client's query carries: encryptions of automorphisms of a secret that
// serves this query alone.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "src/arithmetic/ring/gadget.h"
#include "src/arithmetic/ring/ring_dimension.h"

namespace blindfuse::ring {

// Packing keys: of the automorphism X -> X^5, and of X -> X^-1 (InsPIRe, ePrint 2025/1352).
enum class KeyIndex : uint8_t { kFive, kMinusOne };
inline constexpr size_t kKeys = 2;

// The words of one query's packing keys: for X -> X^5 and X -> X^-1, the bodies of the three digits
// each, as values in the evaluation domain of Ntt. A query sends each word lowest byte first.
inline constexpr size_t kKeyWords = kKeys * kDigits * kDimension;
inline constexpr size_t kKeyBytes = 4 * kKeyWords;  // 49,152

}  // namespace blindfuse::ring

namespace blindfuse {

// Throws InputError if `bytes` has not kKeyBytes bytes, or if a word is not below the packing
// modulus.
void check_packing_keys(std::span<const uint8_t> bytes);

}  // namespace blindfuse
