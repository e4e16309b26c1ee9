// Packs by an engine: the same tables and masks as by the host's threads, whichever packs are made
// together.
#include "host/build/pack_batches.h"

#include <gtest/gtest.h>

#include <array>
#include <atomic>
#include <fstream>
#include <iterator>
#include <map>
#include <memory>
#include <mutex>
#include <vector>

#include "host/packing/hint_polynomials.h"
#include "host/packing/packing_table_builder.h"
#include "tests/build/packed_testing.h"
#include "tests/plain_engine.h"

namespace blindfuse::builder_testing {
namespace {

using ring::kDimension;

// What an engine is given tells it everything that the host knows.
class PackingEngine final : public support::PlainEngine {
 public:
  PackingEngine(uint64_t row_count, uint64_t column_count,
                const ring::PublicPolynomials& polynomials)
      : PlainEngine(row_count, column_count), polynomials_(polynomials) {}

  std::unique_ptr<PackMaker> make_pack_maker(std::span<const uint32_t> blocks,
                                             std::span<const uint32_t> key_masks) override {
    EXPECT_EQ(blocks.size(), row_count());
    for (uint32_t j = 0; j < blocks.size() / kDimension; ++j) {
      std::array<uint32_t, kDimension> words;
      polynomials_.fill_block(j, words);
      EXPECT_TRUE(std::ranges::equal(blocks.subspan(j * kDimension, kDimension), words));
    }
    EXPECT_EQ(is_sealed(), row_count() > 0);
    return std::make_unique<Maker>(*this, std::vector(key_masks.begin(), key_masks.end()));
  }

 private:
  struct Maker final : PackMaker {
    Maker(const PackingEngine& engine, std::vector<uint32_t> key_masks)
        : engine_(engine),
          hint_(engine.polynomials_, static_cast<uint32_t>(engine.row_count())),
          builder_(std::move(key_masks)) {}

    void make(uint32_t pack, MutablePackingTable table, ring::MutablePolynomial mask) override {
      const std::unique_lock alone(mutex_, std::try_to_lock);
      EXPECT_TRUE(alone.owns_lock()) << "one caller at a time";
      std::vector<uint32_t> hints(kDimension * kDimension);
      std::vector<int8_t> column(engine_.row_count());
      for (uint64_t i = 0; i < kDimension; ++i) {
        const uint64_t c = pack * kDimension + i;
        if (c >= engine_.column_count()) break;
        for (uint64_t row = 0; row < column.size(); ++row) column[row] = engine_.at(row, c);
        hint_.compute(column, ring::MutablePolynomial(hints.data() + i * kDimension, kDimension));
      }
      builder_.build(hints, table, mask);
    }

    const PackingEngine& engine_;
    const HintPolynomials hint_;
    const PackingTableBuilder builder_;
    std::mutex mutex_;
  };

  const ring::PublicPolynomials& polynomials_;
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

TEST(PackBatches, AreTheSameByAnEngine) {
  const TemporaryFolder folder;
  const std::filesystem::path root = folder / "db";
  build(two_pack_pairs(), root, two_pack_options());
  const Epoch epoch = read_epoch(root);
  const DatabaseDirectory directory(root);
  const ring::PublicPolynomials polynomials(epoch.manifest.seed);
  const PackSource source{directory, epoch.manifest.layout, epoch.table.shards, polynomials};
  WorkerThreads threads(3);
  const EngineMaker maker = [&](uint64_t rows, uint64_t columns) {
    return std::make_unique<PackingEngine>(rows, columns, polynomials);
  };
  const auto by_engine = make_engine_pack_batches(source, maker, threads);
  ASSERT_TRUE(by_engine);
  EXPECT_EQ(by_engine->packs_max(), kPacksAtOnceMax);
  const auto by_host = make_host_pack_batches(source, threads);
  EXPECT_EQ(by_host->packs_max(), 3u);
  const auto expected = made_of(*by_host, {0, 1}, 3000);
  for (const uint32_t pack : {0u, 1u}) {
    EXPECT_TRUE(expected.at(pack).table == words_of(pack_file(root, epoch.table.packs[pack])));
  }
  const auto both = made_of(*by_engine, {0, 1}, 3000);
  const auto last = made_of(*by_engine, {1}, 952);
  for (const uint32_t pack : {0u, 1u}) {
    EXPECT_TRUE(both.at(pack).table == expected.at(pack).table) << pack;
    EXPECT_EQ(both.at(pack).mask, expected.at(pack).mask) << pack;
  }
  EXPECT_TRUE(last.at(1).table == expected.at(1).table);
  EXPECT_EQ(last.at(1).mask, expected.at(1).mask);
}

TEST(PackBatches, AreNotMadeByAnEngineThatDoesNotPack) {
  const Layout layout;
  const DatabaseDirectory directory("nowhere");
  const ShardTable shards;
  const ring::PublicPolynomials polynomials(ChaChaKey{});
  WorkerThreads threads(1);
  EXPECT_FALSE(make_engine_pack_batches({directory, layout, shards, polynomials},
                                        support::PlainEngine::make, threads));
}

}  // namespace
}  // namespace blindfuse::builder_testing
