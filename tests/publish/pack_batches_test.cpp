// Packs by a pack maker: the same tables and masks whichever packs are made together.
#include "host/publish/pack_stage.h"

#include <gtest/gtest.h>

#include <array>
#include <atomic>
#include <fstream>
#include <map>
#include <memory>
#include <vector>

#include "host/engines/engine_factory.h"
#include "tests/publish/packed_testing.h"

namespace blindfuse::builder_testing {
namespace {

using ring::kDimension;

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

}  // namespace
}  // namespace blindfuse::builder_testing
