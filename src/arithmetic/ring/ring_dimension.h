// The ring of packed responses: Z[X] / (X^d + 1) with d = 2048 (docs/PARAMETERS.md, section 6; the
// parameters are those of SandwichPIR, ePrint 2026/1816).
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

namespace blindfuse::ring {

inline constexpr size_t kDimension = 2048;

// The 2 d-th cyclotomic field has the automorphisms X -> X^g for odd g below 2 d = 4096. They are
// the powers of 5, and their negatives. The powers of 5 leave X^1024 as it is, and so the sum of
// f(X^g) over them is 1024 (f_0 + f_1024 X^1024).
inline constexpr uint32_t kOrder = 2 * kDimension;
inline constexpr size_t kOrbit = kDimension / 2;  // distinct powers of 5

// Coefficients, lowest first, or values in the evaluation domain of Ntt.
using Polynomial = std::span<const uint32_t, kDimension>;
using MutablePolynomial = std::span<uint32_t, kDimension>;

}  // namespace blindfuse::ring
