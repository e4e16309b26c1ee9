// What a build does when the device that makes hints or packs computes wrong.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <memory>

#include "host/cpu/pipelines/answer_pipeline.h"
#include "host/cpu/pipelines/pack_maker.h"
#include "host/hint/hint.h"
#include "src/base/errors.h"
#include "src/system/random.h"
#include "tests/publish/packed_testing.h"

namespace blindfuse::builder_testing {
namespace {

using ::testing::HasSubstr;

// The words of a hint or a pack that come out altered: none, or one.
struct Fault {
  bool in_hints = false;
  bool in_tables = false;
  bool in_masks = false;
};

class AlteredProducts final : public PanelProducts {
 public:
  explicit AlteredProducts(std::unique_ptr<PanelProducts> products)
      : products_(std::move(products)) {}
  std::span<uint32_t> buffer() override { return products_->buffer(); }
  void add(QueryBatch queries, RowRange rows) override { products_->add(queries, rows); }
  std::span<const uint32_t> finish() override {
    const auto words = products_->finish();
    words_.assign(words.begin(), words.end());
    words_[words_.size() / 2] += 0x100;
    return words_;
  }

 private:
  const std::unique_ptr<PanelProducts> products_;
  std::vector<uint32_t> words_;
};

class AlteredEngine final : public support::PlainEngine {
 public:
  using PlainEngine::PlainEngine;
  std::unique_ptr<PanelProducts> make_panel_products(size_t count, uint64_t rows_max) override {
    return std::make_unique<AlteredProducts>(PlainEngine::make_panel_products(count, rows_max));
  }
};

class AlteredPacks final : public PackMaker {
 public:
  AlteredPacks(std::unique_ptr<PackMaker> maker, const Fault& fault)
      : maker_(std::move(maker)), fault_(fault) {}
  void set_columns(uint64_t first, std::span<const uint8_t> bytes, size_t bucket) override {
    maker_->set_columns(first, bytes, bucket);
  }
  void seal() override { maker_->seal(); }
  void make(uint32_t pack, MutablePackingTable table, ring::MutablePolynomial mask) override {
    maker_->make(pack, table, mask);
    if (fault_.in_tables) table[kTableWords - 1] ^= 1;
    if (fault_.in_masks) mask[7] ^= 1;
  }

 private:
  const std::unique_ptr<PackMaker> maker_;
  const Fault fault_;
};

class FaultyDevice final : public support::PlainEngineMaker {
 public:
  explicit FaultyDevice(const Fault& fault) : fault_(fault) {}
  std::unique_ptr<Engine> make_engine(uint64_t rows, uint64_t columns) const override {
    if (fault_.in_hints) return std::make_unique<AlteredEngine>(rows, columns);
    return PlainEngineMaker::make_engine(rows, columns);
  }
  std::unique_ptr<PackMaker> make_pack_maker(std::span<const uint32_t> blocks,
                                             std::span<const uint32_t> key_masks,
                                             uint64_t row_count,
                                             uint64_t column_count) const override {
    return std::make_unique<AlteredPacks>(
        make_cpu_pack_maker(blocks, key_masks, row_count, column_count), fault_);
  }
  bool computes_on_device() const override { return true; }

 private:
  const Fault fault_;
};

// What building with this device throws; empty when it publishes.
std::string error_of_building(const FaultyDevice& device, const Pairs& pairs,
                              const std::filesystem::path& root, BuildOptions options) {
  options.engines = &device;
  try {
    build(pairs, root, options);
  } catch (const DeviceLostError& error) {
    return error.what();
  }
  return "";
}

TEST(CheckedBuild, PublishesNoHintThatIsWrong) {
  const TemporaryFolder folder;
  BuildOptions options;
  options.shard_count = 2;
  options.mode = Mode::kHint;
  options.lwe = find_lwe_params("lwe-1288");  // the quickest
  const Pairs before = {{"a", "1"}, {"b", "2"}}, after = {{"a", "1"}, {"b", "3"}};
  const FaultyDevice right({}), wrong({.in_hints = true});

  EXPECT_THAT(error_of_building(wrong, before, folder / "db", options),
              HasSubstr("columns of the hint are wrong"));
  EXPECT_FALSE(std::filesystem::exists(folder / "db/manifest.json"));

  EXPECT_EQ(error_of_building(right, before, folder / "db", options), "");
  const std::string manifest = read_whole(folder / "db/manifest.json");
  EXPECT_THAT(error_of_building(wrong, after, folder / "db", options),
              HasSubstr("rows; nothing is published"));
  EXPECT_EQ(read_whole(folder / "db/manifest.json"), manifest);
  EXPECT_EQ(look_up(load(folder / "db"), "b"), "2");
}

TEST(CheckedBuild, PublishesNoPackThatIsWrong) {
  const TemporaryFolder folder;
  for (const Fault fault : {Fault{.in_tables = true}, Fault{.in_masks = true}}) {
    const FaultyDevice wrong(fault);
    EXPECT_THAT(error_of_building(wrong, two_pack_pairs(), folder / "db", two_pack_options()),
                HasSubstr("differs from the processor's; nothing is published"));
    EXPECT_FALSE(std::filesystem::exists(folder / "db/manifest.json"));
  }
  const FaultyDevice right({});
  EXPECT_EQ(error_of_building(right, two_pack_pairs(), folder / "db", two_pack_options()), "");
  EXPECT_TRUE(std::filesystem::exists(folder / "db/manifest.json"));
}

// A hint of A times D by plain loops, and its check.
class HintCheckTest : public ::testing::Test {
 protected:
  static constexpr uint32_t kDimension = 40;
  static constexpr uint64_t kRows = 192, kColumns = 9;

  HintCheckTest() : check_(kDimension, kRows, numbers_source()) {
    for (uint8_t& byte : matrix_) byte = static_cast<uint8_t>(numbers_());
    engine_.set_columns(0, matrix_);
    engine_.seal();
    std::vector<uint32_t> panel(kDimension * kPanelRows);
    for (uint64_t j = 0; j < kRows / kPanelRows; ++j) {
      for (uint32_t& word : panel) word = static_cast<uint32_t>(numbers_());
      check_.add_panel(j, panel);
      for (uint64_t c = 0; c < kColumns; ++c) {
        for (uint32_t k = 0; k < kDimension; ++k) {
          for (uint64_t i = 0; i < kPanelRows; ++i) {
            const auto byte = static_cast<int8_t>(matrix_[c * kRows + j * kPanelRows + i]);
            hint_[c * kDimension + k] +=
                panel[k * kPanelRows + i] * static_cast<uint32_t>(int32_t{byte});
          }
        }
      }
    }
  }

  RandomSource numbers_source() {
    return [this](std::span<uint8_t> bytes) {
      for (uint8_t& byte : bytes) byte = static_cast<uint8_t>(numbers_());
    };
  }
  std::string difference() { return check_.difference(engine_, hint_, threads_); }

  std::mt19937 numbers_{401};
  std::vector<uint8_t> matrix_ = std::vector<uint8_t>(kRows * kColumns);
  support::PlainEngine engine_{kRows, kColumns};
  std::vector<uint32_t> hint_ = std::vector<uint32_t>(kColumns * kDimension);
  HintCheck check_;
  WorkerThreads threads_{3};
};

TEST_F(HintCheckTest, PassesTheHintThatIsRight) { EXPECT_EQ(difference(), ""); }

TEST_F(HintCheckTest, FindsEveryWordThatIsOff) {
  for (size_t i = 0; i < hint_.size(); ++i) {
    hint_[i] += 1u << (i % 24);
    EXPECT_EQ(difference(), "1 of 9 columns of the hint are wrong, the first number " +
                                std::to_string(i / kDimension));
    hint_[i] -= 1u << (i % 24);
  }
}

// The error that is missed most often, by a row with probability 1/2.
TEST_F(HintCheckTest, FindsMostOfTheWordsThatAreOffByTheUpperBit) {
  size_t found = 0;
  for (uint32_t& word : hint_) {
    word ^= 0x8000'0000;
    if (!difference().empty()) ++found;
    word ^= 0x8000'0000;
  }
  // 360 words, each missed with probability 1/16: 22.5 of them, and a standard deviation of 4.6.
  // But a row's factor for word k is the same in all columns, so that 40 factors decide, each
  // for 9.
  EXPECT_GE(found, 270u);
}

}  // namespace
}  // namespace blindfuse::builder_testing
