#include "src/lwe_params.h"

#include <array>

namespace blindfuse {
namespace {

constexpr std::array<LweParams, 3> kSets = {{
    {"lwe-1774", 1774, "128 bits after 2^52 queries", "FrodoPIR, section 5.2"},
    {"lwe-1572", 1572, "128 bits after about 2^30 queries", "FrodoPIR, appendix C"},
    {"lwe-1288", 1288, "128 bits, plain LWE", "FrodoPIR, appendix C"},
}};

}  // namespace

std::span<const LweParams> lwe_params() { return kSets; }

const LweParams* find_lwe_params(std::string_view name) {
  for (const LweParams& set : kSets) {
    if (set.name == name) return &set;
  }
  return nullptr;
}

}  // namespace blindfuse
