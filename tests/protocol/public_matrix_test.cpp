#include "src/protocol/public_matrix.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <span>
#include <vector>

#include "src/arithmetic/lwe_params.h"
#include "tests/reference_pir.h"
#include "tests/support.h"
#include "tests/vectors.h"

namespace blindfuse {
namespace {

using vectors::json;

std::vector<uint32_t> panel_of(const PublicMatrix& matrix, uint64_t j) {
  std::vector<uint32_t> panel(matrix.panel_words(), 0xaaaaaaaa);
  matrix.fill_panel(j, panel);
  return panel;
}

TEST(PublicMatrix, AgreesWithTheVectors) {
  const json file = vectors::read_vectors("public_matrix.json");
  const auto seed = vectors::array_from_hex<32>(file.at("seed"));
  for (const json& c : file.at("panels")) {
    const LweParams* lwe = find_lwe_params(c.at("lwe").get<std::string>());
    ASSERT_NE(lwe, nullptr);
    ASSERT_EQ(lwe->dimension, c.at("dimension"));
    const PublicMatrix matrix(seed, lwe->dimension);
    EXPECT_EQ(matrix.dimension(), lwe->dimension);
    const auto panel = panel_of(matrix, c.at("panel"));
    ASSERT_EQ(panel.size(), size_t{64} * lwe->dimension);
    EXPECT_EQ(json(std::vector(panel.begin(), panel.begin() + 16)), c.at("first_words"));
    EXPECT_EQ(json(std::vector(panel.end() - 16, panel.end())), c.at("last_words"));
    EXPECT_EQ(json(vectors::to_hex(reference_pir::sha256(reference_pir::bytes_of_words(panel)))),
              c.at("sha256"));
  }
}

// Far beyond every row that a database may have: the panel's number is a u64.
TEST(PublicMatrix, AgreesWithTheReferenceAtEveryPanelNumber) {
  support::SeededRandom random(14);
  for (int i = 0; i < 40; ++i) {
    MatrixSeed seed;
    for (uint8_t& byte : seed) byte = random.byte();
    const auto dimension = static_cast<uint32_t>(random.between(1, 20));
    const uint64_t j = random.u64() >> random.below(64);
    EXPECT_EQ(panel_of(PublicMatrix(seed, dimension), j),
              reference_pir::public_matrix_panel({seed.begin(), seed.end()}, j, dimension));
  }
}

}  // namespace
}  // namespace blindfuse
