// Packs by a pack maker: all of their columns, each once, and the same tables and masks whichever
// packs are made together.
#include "host/publish/pack_stage.h"

#include <gtest/gtest.h>

#include <array>
#include <atomic>
#include <fstream>
#include <iterator>
#include <map>
#include <memory>
#include <mutex>
#include <vector>

#include "host/cpu/packing/hint_polynomials.h"
#include "host/cpu/packing/packing_table_builder.h"
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
  std::vector<uint32_t> buckets;              // whose public polynomials there are
  std::vector<std::vector<uint8_t>> columns;  // empty where none was set
  std::vector<size_t> places;                 // of their buckets
  bool sealed = false;
};

class ListeningMaker final : public support::PlainEngineMaker {
 public:
  // bucket_count: of the database.
  ListeningMaker(const ring::PublicPolynomials& polynomials, uint32_t bucket_count, Told& told)
      : polynomials_(polynomials), bucket_count_(bucket_count), told_(told) {}

  size_t packs_at_once(uint64_t, unsigned) const override { return 7; }

  std::unique_ptr<PackMaker> make_pack_maker(std::span<const uint32_t> blocks,
                                             std::span<const uint32_t> key_masks,
                                             uint64_t row_count,
                                             uint64_t column_count) const override {
    EXPECT_EQ(blocks.size() % row_count, 0u);
    told_.buckets.clear();
    for (uint64_t first = 0; first < blocks.size(); first += row_count) {
      told_.buckets.push_back(bucket_of(blocks.subspan(first, row_count)));
    }
    told_.rows = row_count;
    told_.columns.assign(column_count, {});
    told_.places.assign(column_count, 0);
    told_.sealed = false;
    return std::make_unique<Maker>(make_cpu_pack_maker(blocks, key_masks, row_count, column_count),
                                   told_);
  }

 private:
  class Maker final : public PackMaker {
   public:
    Maker(std::unique_ptr<PackMaker> maker, Told& told) : maker_(std::move(maker)), told_(told) {}

    void set_columns(uint64_t first, std::span<const uint8_t> bytes, size_t bucket) override {
      EXPECT_FALSE(told_.sealed);
      for (size_t c = 0; c < bytes.size() / told_.rows; ++c) {
        const auto column = bytes.subspan(c * told_.rows, told_.rows);
        const std::lock_guard lock(told_.mutex);
        EXPECT_TRUE(told_.columns[first + c].empty()) << "a column comes once";
        told_.columns[first + c].assign(column.begin(), column.end());
        told_.places[first + c] = bucket;
      }
      maker_->set_columns(first, bytes, bucket);
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

  // The one whose public polynomials these are.
  uint32_t bucket_of(std::span<const uint32_t> words) const {
    for (uint32_t bucket = 0; bucket < bucket_count_; ++bucket) {
      bool is_it = true;
      for (uint32_t j = 0; j < words.size() / kDimension; ++j) {
        std::array<uint32_t, kDimension> block;
        polynomials_.fill_block(bucket, j, block);
        is_it = is_it && std::ranges::equal(words.subspan(j * kDimension, kDimension), block);
      }
      if (is_it) return bucket;
    }
    ADD_FAILURE() << "public polynomials of no bucket";
    return 0;
  }

  const ring::PublicPolynomials& polynomials_;
  const uint32_t bucket_count_;
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
  const ListeningMaker engines(polynomials, 1, told);
  const std::string matrix = this->matrix();
  for (const unsigned thread_count : {1u, 3u}) {
    WorkerThreads threads(thread_count);
    PackBatches batches(source, engines, threads);
    EXPECT_EQ(batches.packs_max(), 7u) << "as the maker says";
    made_of(batches, {1}, 476);
    EXPECT_EQ(told.rows, epoch.manifest.layout.row_count);
    EXPECT_EQ(told.buckets, std::vector<uint32_t>{0});
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

// The same columns as four buckets of 375: the first pack of 1024 has columns of three of them, and
// the second of two.
TEST_F(PackBatchesTest, GiveColumnsThePublicPolynomialsOfTheirBucket) {
  const Epoch epoch = read_epoch(root_);
  const ring::PublicPolynomials polynomials(epoch.manifest.seed);
  Layout layout = epoch.manifest.layout;
  layout.batch = BatchCode{.keys_per_request = 2, .bucket_count = 4};
  const PackSource source{directory_, layout, epoch.table.shards, polynomials};
  Told told;
  const ListeningMaker engines(polynomials, 4, told);
  WorkerThreads threads(2);
  PackBatches batches(source, engines, threads);
  const auto both = made_of(batches, {0, 1}, 1500);
  EXPECT_EQ(told.buckets, (std::vector<uint32_t>{0, 1, 2, 3}));
  for (size_t c = 0; c < 1500; ++c) EXPECT_EQ(told.places[c], c / 375) << "column " << c;
  const auto first = made_of(batches, {0}, 1024);
  EXPECT_EQ(told.buckets, (std::vector<uint32_t>{0, 1, 2})) << "no others take memory";
  const auto last = made_of(batches, {1}, 476);
  EXPECT_EQ(told.buckets, (std::vector<uint32_t>{2, 3}));
  for (size_t c = 0; c < 476; ++c) EXPECT_EQ(told.places[c], c < 101 ? 0u : 1u) << c;
  EXPECT_TRUE(first.at(0).table == both.at(0).table);
  EXPECT_TRUE(last.at(1).table == both.at(1).table);

  // From each column's own hint polynomial.
  std::vector<HintPolynomials> hints;
  for (const uint32_t bucket : {2u, 3u}) {
    hints.emplace_back(polynomials.blocks(layout.row_count, bucket));
  }
  std::vector<uint32_t> words(kPackColumns * kDimension);
  for (size_t c = 0; c < 476; ++c) {
    const auto* bytes = reinterpret_cast<const int8_t*>(told.columns[c].data());
    hints[c < 101 ? 0 : 1].compute(
        {bytes, told.columns[c].size()},
        ring::MutablePolynomial(words.data() + c * kDimension, kDimension));
  }
  Made expected{std::vector<uint32_t>(kTableWords)};
  PackingTableBuilder(polynomials.key_masks())
      .build(words, MutablePackingTable(expected.table), expected.mask);
  EXPECT_TRUE(last.at(1).table == expected.table);
  EXPECT_EQ(last.at(1).mask, expected.mask);
  EXPECT_FALSE(last.at(1).table == words_of(pack_file(root_, epoch.table.packs[1])))
      << "the table of a single bucket";
}

}  // namespace
}  // namespace blindfuse::builder_testing
