#include "host/hint/hint.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <string>
#include <vector>

#include "host/engines/engine_factory.h"
#include "host/publish/hint_stage.h"
#include "host/system/worker_threads.h"
#include "src/arithmetic/lwe_params.h"
#include "tests/reference_pir.h"
#include "tests/support.h"

namespace blindfuse {
namespace {

using support::SeededRandom;

MatrixSeed random_seed(SeededRandom& random) {
  MatrixSeed seed;
  for (uint8_t& byte : seed) byte = random.byte();
  return seed;
}

// A random matrix, and its hint by the reference.
class HintCase {
 public:
  HintCase(SeededRandom& random, uint64_t rows, uint64_t columns, uint32_t dimension)
      : seed_(random_seed(random)),
        dimension_(dimension),
        rows_(rows),
        columns_(columns),
        bytes_(rows * columns) {
    for (uint8_t& byte : bytes_) byte = random.byte();
    reference_pir::Matrix matrix(rows, columns);
    for (uint64_t c = 0; c < columns; ++c) {
      for (uint64_t r = 0; r < rows; ++r) matrix.at(r, c) = bytes_[c * rows + r];
    }
    const auto a = reference_pir::public_matrix({seed_.begin(), seed_.end()}, dimension, rows);
    expected_ = reference_pir::hint(a, matrix);
  }

  const std::vector<uint32_t>& expected() const { return expected_; }

  // What compute_hint makes of it, which must tell of every row.
  std::vector<uint32_t> computed(const std::string& name, unsigned thread_count) const {
    WorkerThreads threads(thread_count);
    std::vector<uint32_t> hint(columns_ * dimension_, 0xaaaaaaaa);
    const auto engine = make_engine(name, rows_, columns_, thread_count);
    engine->set_columns(0, bytes_);
    engine->seal();
    uint64_t rows_done = 0;
    compute_hint(PublicMatrix(seed_, dimension_), *engine, threads, hint,
                 [&](uint64_t more) { rows_done += more; });
    EXPECT_EQ(rows_done, rows_);
    return hint;
  }

 private:
  MatrixSeed seed_;
  uint32_t dimension_;
  uint64_t rows_;
  uint64_t columns_;
  std::vector<uint8_t> bytes_;
  std::vector<uint32_t> expected_;
};

class HintByEngine : public testing::TestWithParam<std::string> {};

std::string test_name(const testing::TestParamInfo<std::string>& engine) {
  std::string name = engine.param;
  std::ranges::replace(name, ':', '_');
  return name;
}

INSTANTIATE_TEST_SUITE_P(Engines, HintByEngine, testing::ValuesIn(engine_names()), test_name);

// 64 to 1280 rows, and more than one and two blocks of 3072. Every parameter set: scheme_test.cpp.
TEST_P(HintByEngine, AgreesWithTheReferenceForEveryNumberOfPanels) {
  SeededRandom random(300);
  std::vector<uint64_t> panel_counts = {48, 49, 97};
  for (uint64_t panels = 1; panels <= 20; ++panels) panel_counts.push_back(panels);
  for (const uint64_t panels : panel_counts) {
    const auto dimension = static_cast<uint32_t>(random.between(1, 40));
    const HintCase hint_case(random, 64 * panels, random.between(1, 9), dimension);
    const auto thread_count = static_cast<unsigned>(panels % 3 + 1);
    ASSERT_EQ(hint_case.computed(GetParam(), thread_count), hint_case.expected())
        << panels << " panels";
  }
}

// Parts of a packed hint are written one after another, and so must end with a whole byte.
TEST(HintStage, TakesColumnsThatPackIntoWholeBytes) {
  for (uint64_t rows = 1; rows <= uint64_t{1} << 31; rows += rows / 100 + 1) {
    EXPECT_EQ(columns_at_once(rows) % 8, 0u) << rows;
    EXPECT_GT(columns_at_once(rows), 0u) << rows;
  }
}

}  // namespace
}  // namespace blindfuse
