// The ring against tests/vectors/ring.json, which integers in Python made.
#include <gtest/gtest.h>

#include <algorithm>

#include "src/arithmetic/ring/gadget.h"
#include "src/arithmetic/ring/modulus_switch.h"
#include "src/arithmetic/ring/ntt.h"
#include "src/protocol/public_polynomials.h"
#include "tests/packing/expect_words.h"
#include "tests/vectors.h"

namespace blindfuse::ring {
namespace {

using vectors::json;
using Coefficients = std::array<uint32_t, kDimension>;

class RingVectors : public ::testing::Test {
 protected:
  const json file_ = vectors::read_vectors("ring.json");
  const PublicPolynomials polynomials_{vectors::array_from_hex<32>(file_.at("seed"))};
  const PrimeField field_{kPackingModulus};
};

TEST_F(RingVectors, ConstantsAreThoseOfTheFile) {
  EXPECT_EQ(file_.at("dimension"), kDimension);
  EXPECT_EQ(file_.at("modulus"), kPackingModulus);
  EXPECT_EQ(file_.at("root"), root_of_unity(field_));
}

TEST_F(RingVectors, PublicPolynomialsAreThoseOfTheFile) {
  Coefficients found;
  for (const json& block : file_.at("blocks")) {
    polynomials_.fill_block(block.at("j"), found);
    expect_words(found, block);
  }
  for (const json& mask : file_.at("key_masks")) {
    polynomials_.fill_key_mask(mask.at("digit"), found);
    expect_words(found, mask);
  }
}

TEST_F(RingVectors, ValuesAreThoseOfTheFile) {
  Coefficients polynomial;
  polynomials_.fill_block(0, polynomial);
  for (uint32_t& word : polynomial) word = field_.reduce(word);
  portable_ntt(kPackingModulus)->forward(polynomial);
  for (const json& each : file_.at("values_of_block_0")) {
    EXPECT_EQ(polynomial[each.at("point").get<size_t>()], each.at("value"));
  }
  Coefficients x{};
  x[1] = 1;
  portable_ntt(kPackingModulus)->forward(x);
  for (const json& each : file_.at("points")) {
    EXPECT_EQ(x[each.at("point").get<size_t>()], each.at("value"));
    EXPECT_EQ(field_.power(root_of_unity(field_), each.at("exponent").get<uint64_t>()),
              each.at("value"));
  }
}

TEST_F(RingVectors, DigitsAndModuliAreThoseOfTheFile) {
  for (const json& each : file_.at("digits")) {
    const auto found = decompose(each.at("x"), field_);
    EXPECT_EQ(std::vector<int>(found.begin(), found.end()),
              each.at("digits").get<std::vector<int>>());
  }
  for (const json& each : file_.at("lift"))
    EXPECT_EQ(switch_to_q(each.at("word")), each.at("lifted"));
  for (const json& each : file_.at("lower")) {
    EXPECT_EQ(switch_from_q(each.at("x"), each.at("bits")), each.at("lowered"));
  }
  for (const json& each : file_.at("raise")) {
    EXPECT_EQ(switch_to_q(each.at("number"), each.at("bits")), each.at("raised"));
  }
}

}  // namespace
}  // namespace blindfuse::ring
