#include "src/protocol/public_matrix.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <span>
#include <thread>
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

// Nor on the dimension, as far as both reach: one keystream for all.
TEST(PublicMatrix, PanelDoesNotDependOnWhatWasInItsMemory) {
  const PublicMatrix matrix(MatrixSeed{1, 2, 3}, 5);
  std::vector<uint32_t> zeros(matrix.panel_words(), 0);
  std::vector<uint32_t> ones(matrix.panel_words(), 0xffffffff);
  matrix.fill_panel(9, zeros);
  matrix.fill_panel(9, ones);
  EXPECT_EQ(zeros, ones);
  const std::vector<uint32_t> larger = panel_of(PublicMatrix(MatrixSeed{1, 2, 3}, 6), 9);
  EXPECT_TRUE(std::equal(zeros.begin(), zeros.end(), larger.begin()));
}

TEST(PublicMatrix, PanelsDiffer) {
  const PublicMatrix matrix(MatrixSeed{}, 1);
  EXPECT_NE(panel_of(matrix, 0), panel_of(matrix, 1));
  EXPECT_NE(panel_of(matrix, 0), panel_of(matrix, uint64_t{1} << 32));
  EXPECT_NE(panel_of(matrix, 0), panel_of(PublicMatrix(MatrixSeed{1}, 1), 0));
}

TEST(PublicMatrix, IsFilledByManyThreadsInAnyOrder) {
  const PublicMatrix matrix(MatrixSeed{7}, 50);
  constexpr uint64_t kPanels = 24;
  std::vector<std::vector<uint32_t>> panels(kPanels);
  std::vector<std::thread> threads;
  for (uint64_t t = 0; t < 3; ++t) {
    threads.emplace_back([&, t] {
      for (uint64_t i = 0; i < kPanels; i += 3) {
        const uint64_t j = kPanels - 1 - i - t;
        panels[j] = panel_of(matrix, j);
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  for (uint64_t j = 0; j < kPanels; ++j) EXPECT_EQ(panels[j], panel_of(matrix, j)) << j;
}

}  // namespace
}  // namespace blindfuse
