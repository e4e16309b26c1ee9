#include "src/arithmetic/lwe_params.h"

#include <algorithm>
#include <array>

#include "src/arithmetic/ring/ring_dimension.h"

namespace blindfuse {
namespace {

constexpr std::string_view kRingAssumption = "ring LWE and circular security";

constexpr std::array<LweParams, 4> kSets = {{
    {"lwe-1774", 1774, Mode::kHint, 1, "LWE", 176, "FrodoPIR, section 5.2"},
    {"lwe-1572", 1572, Mode::kHint, 1, "LWE", 155, "FrodoPIR, appendix C"},
    {"lwe-1288", 1288, Mode::kHint, 4, "LWE", 133, "FrodoPIR, appendix C"},
    {"ring-2048", ring::kDimension, Mode::kPacked, 1, kRingAssumption, 205,
     "SandwichPIR (ePrint 2026/1816)"},
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
