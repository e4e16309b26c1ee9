#include "host/publish/dry_run.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>
#include <memory>
#include <string>

#include "host/database/directory.h"
#include "src/protocol/manifest.h"
#include "tests/publish/builder_testing.h"

namespace blindfuse {
namespace {

using ::testing::HasSubstr;

DryRun dry_run_of(uint32_t key_count, const std::filesystem::path& root) {
  builder_testing::Pairs pairs;
  for (uint32_t i = 0; i < key_count; ++i) pairs.emplace_back("key " + std::to_string(i), "abc");
  std::vector<std::unique_ptr<KeyValueSource>> sources;
  sources.push_back(std::make_unique<builder_testing::MemorySource>(pairs));
  return dry_run(sources, root, {});
}

// Requests for two keys, in four buckets of a shard.
void publish_manifest_of_two_keys(const std::filesystem::path& root) {
  Manifest manifest;
  Layout& layout = manifest.layout;
  layout.key_count = 1000;
  layout.shard_count = 4;
  layout.row_count = 2048;
  layout.segment_length = 256;
  layout.record = {8, 0, 3};
  layout.lwe = find_lwe_params("ring-2048");
  layout.query_bits = 26;
  layout.response_bits = 12;
  layout.hint_bits = 20;
  layout.batch = BatchCode{2, 4};
  check_layout(layout);
  std::ofstream(DatabaseDirectory(root).manifest_file()) << serialize_manifest(manifest);
}

// Each bucket has a record of three quarters of the keys: 750 of 1000, which 2048 rows hold, and
// 2250 of 3000, which they do not. A quarter of 3000 keys would fit.
TEST(SeveralKeysDryRun, CountsTheRecordsOfTheFullestShard) {
  const builder_testing::TemporaryFolder folder;
  publish_manifest_of_two_keys(folder.path());
  const DryRun kept = dry_run_of(1000, folder.path());
  EXPECT_EQ(kept.why_not_kept, "");
  ASSERT_TRUE(kept.kept);
  EXPECT_EQ(kept.kept->batch, (BatchCode{2, 4}));
  EXPECT_EQ(kept.request.batch, (BatchCode{2, 4}));
  const DryRun again = dry_run_of(3000, folder.path());
  EXPECT_FALSE(again.kept);
  EXPECT_THAT(again.why_not_kept, HasSubstr(" records, more than 2048 rows hold"));
  EXPECT_EQ(again.request.batch, (BatchCode{2, 4}));
}

}  // namespace
}  // namespace blindfuse
