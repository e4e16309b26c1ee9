#include "src/arithmetic/lwe_params.h"

#include <gtest/gtest.h>

#include <map>
#include <string>

namespace blindfuse {
namespace {

// docs/PROTOCOL.md, section 2.
const std::map<std::string, uint32_t> kDimensions = {
    {"lwe-1774", 1774}, {"lwe-1572", 1572}, {"lwe-1288", 1288}, {"ring-2048", 2048}};

TEST(LweParams, AreTheSetsOfTheProtocol) {
  std::map<std::string, uint32_t> dimensions;
  for (const LweParams& set : lwe_params()) {
    dimensions[std::string(set.name)] = set.dimension;
    EXPECT_GE(set.security_bits, 128u) << set.name;
    EXPECT_EQ(set.assumption, set.mode == Mode::kHint ? "LWE" : "ring LWE and circular security");
    EXPECT_FALSE(set.source.empty());
  }
  EXPECT_EQ(dimensions, kDimensions);
  EXPECT_EQ(lwe_params().size(), kDimensions.size());
}

// docs/PARAMETERS.md, section 1: only the smallest dimension needs wider errors.
TEST(LweParams, HaveTernaryErrorsExceptForTheSmallestDimension) {
  for (const LweParams& set : lwe_params()) {
    EXPECT_EQ(set.error_max, set.name == "lwe-1288" ? 4u : 1u) << set.name;
  }
}

TEST(LweParams, BeginWithTheDefault) { EXPECT_EQ(lwe_params().front().name, "lwe-1774"); }

TEST(LweParams, AreOfOneModeEach) {
  for (const LweParams& set : lwe_params()) {
    EXPECT_EQ(set.mode, set.name == "ring-2048" ? Mode::kPacked : Mode::kHint) << set.name;
  }
  EXPECT_EQ(default_lwe_params(Mode::kHint).name, "lwe-1774");
  EXPECT_EQ(default_lwe_params(Mode::kPacked).name, "ring-2048");
  EXPECT_EQ(&default_lwe_params(Mode::kPacked), find_lwe_params("ring-2048"));
}

TEST(LweParams, ModesHaveTheNamesOfTheManifest) {
  EXPECT_EQ(mode_name(Mode::kHint), "hint");
  EXPECT_EQ(mode_name(Mode::kPacked), "packed");
}

TEST(LweParams, AreFoundByTheirExactNameOnly) {
  for (const auto& [name, dimension] : kDimensions) {
    const LweParams* set = find_lwe_params(name);
    ASSERT_NE(set, nullptr);
    EXPECT_EQ(set->dimension, dimension);
    EXPECT_EQ(find_lwe_params(name + " "), nullptr);
    EXPECT_EQ(find_lwe_params(name.substr(1)), nullptr);
  }
  EXPECT_EQ(find_lwe_params(""), nullptr);
  EXPECT_EQ(find_lwe_params("LWE-1774"), nullptr);
  EXPECT_EQ(find_lwe_params("lwe-1024"), nullptr);
  EXPECT_EQ(find_lwe_params("lwe-2048"), nullptr);
}

TEST(LweParams, ScalePlaintextsToTheTopByte) { EXPECT_EQ(kPlaintextShift, 32u - 8u); }

}  // namespace
}  // namespace blindfuse
