// How often a full request for several keys leaves one out, because its buckets have other keys. A
// simulation said so, and so does a union bound over the smallest sets of keys that have too few
// buckets (docs/PARAMETERS.md, section 9).
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <span>

#include "src/arithmetic/layout.h"

namespace blindfuse {

// Simulated requests, each full of keys with random buckets.
struct MeasuredBatchCode {
  BatchCode code;
  uint64_t requests = 0;  // at least one
  uint64_t left_out = 0;  // of these: with a key left out
};

// What the simulation counted, with the client's matching.
inline constexpr std::array<MeasuredBatchCode, 12> kMeasuredBatchCodes{{
    {{4, 16}, 100'000'000, 0},
    {{8, 24}, 100'000'000, 3},
    {{12, 32}, 100'000'000, 9},
    {{16, 32}, 100'000'000, 98},
    {{24, 48}, 50'000'000, 3},
    {{32, 64}, 50'000'000, 0},
    {{48, 96}, 30'000'000, 0},
    {{64, 96}, 30'000'000, 1},
    {{128, 192}, 12'000'000, 0},
    {{256, 384}, 6'000'000, 0},
    {{512, 768}, 2'000'000, 0},
    {{1024, 1536}, 1'000'000, 0},
}};

// The upper end of the 95 % confidence interval, one-sided, of the probability of an event that was
// seen `seen` times in `trials` independent trials. It is 3 / trials where it was never seen, which
// is Clopper and Pearson's bound to 0.2 %, and otherwise the 95 % quantile of the gamma
// distribution of shape seen + 1, divided by trials: their bound for a rare event. The quantile is
// Wilson and Hilferty's approximation, which is right to 1 %. At most 1.
double upper_confidence_bound(uint64_t seen, uint64_t trials);

// A bound on the probability that a full request leaves a key out, with 95 % confidence: the lowest
// of those that were measured for at least as many keys in at most as many buckets, where it can
// only happen more often. Nothing if there are none.
std::optional<double> left_out_bound(
    const BatchCode& code, std::span<const MeasuredBatchCode> measured = kMeasuredBatchCodes);

// The same, as it is proven for keys that no one chose for their buckets: 0 for up to three keys,
// each of which has three buckets, and otherwise 2^-20 for the usual number of buckets or more
// (docs/PARAMETERS.md, section 9). Nothing for fewer buckets.
std::optional<double> proven_left_out_bound(const BatchCode& code);

}  // namespace blindfuse
