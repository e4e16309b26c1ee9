// Packs by a pack maker: all of their columns, each once, and the same tables and masks whichever
// packs are made together.
#include "host/publish/pack_batches.h"

#include <gtest/gtest.h>

#include <array>
#include <atomic>
#include <fstream>
#include <iterator>
#include <map>
#include <memory>
#include <mutex>
#include <vector>

#include "host/cpu/pipelines/pack_maker.h"
#include "host/engines/engine_factory.h"
#include "tests/plain_engine.h"
#include "tests/publish/packed_testing.h"

namespace blindfuse::builder_testing {
namespace {

using ring::kDimension;

// What a pack maker was told, of columns that tests know.
struct Told {
  std::mutex mutex;
  uint64_t rows = 0;
  std::vector<std::vector<uint8_t>> columns;  // empty where none was set
  bool sealed = false;
};

class ListeningMaker final : public support::PlainEngineMaker {
 public:
  ListeningMaker(const ring::PublicPolynomials& polynomials, Told& told)
      : polynomials_(polynomials), told_(told) {}

  size_t packs_at_once(uint64_t, unsigned) const override { return 7; }

  std::unique_ptr<PackMaker> make_pack_maker(std::span<const uint32_t> blocks,
                                             std::span<const uint32_t> key_masks,
                                             uint64_t column_count) const override {
    for (uint32_t j = 0; j < blocks.size() / kDimension; ++j) {
      std::array<uint32_t, kDimension> words;
      polynomials_.fill_block(j, words);
      EXPECT_TRUE(std::ranges::equal(blocks.subspan(j * kDimension, kDimension), words));
    }
    told_.rows = blocks.size();
    told_.columns.assign(column_count, {});
    told_.sealed = false;
    return std::make_unique<Maker>(make_cpu_pack_maker(blocks, key_masks, column_count), told_);
  }

 private:
  class Maker final : public PackMaker {
   public:
    Maker(std::unique_ptr<PackMaker> maker, Told& told) : maker_(std::move(maker)), told_(told) {}

    void set_columns(uint64_t first, std::span<const uint8_t> bytes) override {
      EXPECT_FALSE(told_.sealed);
      for (size_t c = 0; c < bytes.size() / told_.rows; ++c) {
        const auto column = bytes.subspan(c * told_.rows, told_.rows);
        const std::lock_guard lock(told_.mutex);
        EXPECT_TRUE(told_.columns[first + c].empty()) << "a column comes once";
        told_.columns[first + c].assign(column.begin(), column.end());
      }
      maker_->set_columns(first, bytes);
    }
    void seal() override {
      EXPECT_FALSE(told_.sealed);
      told_.sealed = true;
      maker_->seal();
    }
    void make(uint32_t pack, MutablePackingTable table, ring::MutablePolynomial mask) override {
      EXPECT_TRUE(told_.sealed);
      maker_->make(pack, table, mask);
    }

   private:
    const std::unique_ptr<PackMaker> maker_;
    Told& told_;
  };

  const ring::PublicPolynomials& polynomials_;
  Told& told_;
};

struct Made {
  std::vector<uint32_t> table;
  std::array<uint32_t, kDimension> mask{};
};

// By pack.
std::map<uint32_t, Made> made_of(PackBatches& batches, const std::vector<uint32_t>& packs,
                                 uint64_t columns_expected) {
  std::map<uint32_t, Made> made;
  for (const uint32_t pack : packs) made[pack] = {};
  std::atomic<uint64_t> columns = 0;
  batches.make(
      packs, [&](uint64_t count) { columns += count; },
      [&](size_t i, MutablePackingTable table, ring::MutablePolynomial mask) {
        Made& of_pack = made.at(packs[i]);
        of_pack.table.assign(table.begin(), table.end());
        std::ranges::copy(mask, of_pack.mask.begin());
      });
  EXPECT_EQ(columns, columns_expected);
  return made;
}

std::vector<uint32_t> words_of(const std::filesystem::path& path) {
  std::vector<uint32_t> words(kTableWords);
  std::ifstream(path, std::ios::binary)
      .read(reinterpret_cast<char*>(words.data()), static_cast<std::streamsize>(kTableBytes));
  return words;
}

class PackBatchesTest : public testing::Test {
 protected:
  PackBatchesTest() { build(two_pack_pairs(), root_, two_pack_options()); }

  // Of all shards, column after column.
  std::string matrix() const {
    std::string all;
    for (const ShardEntry& shard : read_epoch(root_).table.shards) {
      all += read_whole(directory_.shards() / DatabaseDirectory::matrix_name(shard.matrix));
    }
    return all;
  }

  const TemporaryFolder folder_;
  const std::filesystem::path root_ = folder_ / "db";
  const DatabaseDirectory directory_{root_};
};

TEST_F(PackBatchesTest, AreTheSameWhicheverPacksAreMadeTogether) {
  const Epoch epoch = read_epoch(root_);
  const ring::PublicPolynomials polynomials(epoch.manifest.seed);
  const PackSource source{directory_, epoch.manifest.layout, epoch.table.shards, polynomials};
  WorkerThreads threads(3);
  const auto engines = make_engine_maker("cpu", 1);
  PackBatches batches(source, *engines, threads);
  EXPECT_EQ(batches.packs_max(), 3u) << "one a thread";
  const auto both = made_of(batches, {0, 1}, 1500);
  const auto last = made_of(batches, {1}, 476);
  for (const uint32_t pack : {0u, 1u}) {
    EXPECT_TRUE(both.at(pack).table == words_of(pack_file(root_, epoch.table.packs[pack]))) << pack;
  }
  EXPECT_TRUE(last.at(1).table == both.at(1).table);
  EXPECT_EQ(last.at(1).mask, both.at(1).mask);
}

TEST_F(PackBatchesTest, GiveTheMakerEveryColumnOnce) {
  const Epoch epoch = read_epoch(root_);
  const ring::PublicPolynomials polynomials(epoch.manifest.seed);
  const PackSource source{directory_, epoch.manifest.layout, epoch.table.shards, polynomials};
  Told told;
  const ListeningMaker engines(polynomials, told);
  const std::string matrix = this->matrix();
  for (const unsigned thread_count : {1u, 3u}) {
    WorkerThreads threads(thread_count);
    PackBatches batches(source, engines, threads);
    EXPECT_EQ(batches.packs_max(), 7u) << "as the maker says";
    made_of(batches, {1}, 476);
    EXPECT_EQ(told.rows, epoch.manifest.layout.row_count);
    ASSERT_EQ(told.columns.size(), 476u);
    for (size_t c = 0; c < 476; ++c) {
      const auto at = static_cast<std::ptrdiff_t>((kPackColumns + c) * told.rows);
      EXPECT_TRUE(std::equal(told.columns[c].begin(), told.columns[c].end(), matrix.begin() + at,
                             matrix.begin() + at + static_cast<std::ptrdiff_t>(told.rows),
                             [](uint8_t a, char b) { return a == static_cast<uint8_t>(b); }))
          << "column " << c;
    }
  }
}

}  // namespace
}  // namespace blindfuse::builder_testing
