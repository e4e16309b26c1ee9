// A client's packing keys as its query brings them: encryptions of automorphisms of a secret that
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

// Packing keys of one query in words: for X -> X^5 and X -> X^-1, the three digits' bodies each,
// values in the evaluation domain of Ntt; lowest byte first where they are sent.
inline constexpr size_t kKeyWords = kKeys * kDigits * kDimension;
inline constexpr size_t kKeyBytes = 4 * kKeyWords;  // 49,152

}  // namespace blindfuse::ring

namespace blindfuse {

// Throws InputError when there are not kKeyBytes bytes, and for a word that is not below the
// packing modulus.
void check_packing_keys(std::span<const uint8_t> bytes);

}  // namespace blindfuse
