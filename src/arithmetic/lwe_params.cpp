#include "src/arithmetic/lwe_params.h"

#include <algorithm>
#include <array>

#include "src/arithmetic/ring/ring_dimension.h"

namespace blindfuse {
namespace {

constexpr std::array<LweParams, 4> kSets = {{
    {"lwe-1774", 1774, "128 bits after 2^52 queries", "FrodoPIR, section 5.2"},
    {"lwe-1572", 1572, "128 bits after about 2^30 queries", "FrodoPIR, appendix C"},
    {"lwe-1288", 1288, "128 bits, plain LWE", "FrodoPIR, appendix C", Mode::kHint, 4},
    {"ring-2048", ring::kDimension,
     "well over 128 bits, ring LWE; packing keys are assumed to be circularly secure",
     "SandwichPIR (ePrint 2026/1816)", Mode::kPacked},
}};

}  // namespace

std::string_view mode_name(Mode mode) { return mode == Mode::kHint ? "hint" : "packed"; }

std::span<const LweParams> lwe_params() { return kSets; }

const LweParams& default_lwe_params(Mode mode) {
  return *std::find_if(kSets.begin(), kSets.end(),
                       [mode](const LweParams& set) { return set.mode == mode; });
}

const LweParams* find_lwe_params(std::string_view name) {
  for (const LweParams& set : kSets) {
    if (set.name == name) return &set;
  }
  return nullptr;
}

}  // namespace blindfuse
