// The packing key that a client's query carries: encryptions of the automorphism X -> X^5 of a
// secret that serves this query alone (InsPIRe, ePrint 2025/1352).
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "src/arithmetic/ring/gadget.h"
#include "src/arithmetic/ring/ring_dimension.h"

namespace blindfuse::ring {

// The words of one query's packing key: the bodies of the three digits, as values in the evaluation
// domain of Ntt. A query sends each word lowest byte first.
inline constexpr size_t kKeyWords = kDigits * kDimension;
inline constexpr size_t kKeyBytes = 4 * kKeyWords;  // 24,576

}  // namespace blindfuse::ring

namespace blindfuse {

// Throws InputError if `bytes` has not kKeyBytes bytes, or if a word is not below the packing
// modulus.
void check_packing_key(std::span<const uint8_t> bytes);

}  // namespace blindfuse
