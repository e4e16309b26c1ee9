#include "host/publish/database_builder.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "host/database/directory.h"
#include "src/protocol/manifest.h"
#include "tests/publish/builder_testing.h"
#include "tests/support.h"

namespace blindfuse {
namespace {

using builder_testing::MemorySource;
using builder_testing::TemporaryFolder;
using support::input_error_of;
using ::testing::AllOf;
using ::testing::HasSubstr;

std::vector<std::unique_ptr<KeyValueSource>> sources_of(const builder_testing::Pairs& pairs) {
  std::vector<std::unique_ptr<KeyValueSource>> sources;
  sources.push_back(std::make_unique<MemorySource>(pairs));
  return sources;
}

// What this process has open below a folder, with its permissions, as it is when a pair is read.
class WatchingSource final : public KeyValueSource {
 public:
  WatchingSource(std::filesystem::path folder, std::vector<mode_t>& found)
      : folder_(std::move(folder)), found_(found) {}

  bool next(KeyValuePair& pair) override {
    if (!pairs_.next(pair)) return false;
    for (const auto& file : std::filesystem::directory_iterator("/proc/self/fd")) {
      std::error_code error;
      const std::string target = std::filesystem::read_symlink(file.path(), error).string();
      struct stat status {};
      if (error || !target.starts_with(folder_.string() + "/")) continue;
      if (stat(file.path().c_str(), &status) == 0) found_.push_back(status.st_mode & 07777);
    }
    return true;
  }
  const std::string& name() const override { return pairs_.name(); }
  std::string_view place_unit() const override { return pairs_.place_unit(); }
  uint64_t bytes_read() const override { return pairs_.bytes_read(); }
  std::optional<uint64_t> bytes_total() const override { return pairs_.bytes_total(); }

 private:
  const std::filesystem::path folder_;
  std::vector<mode_t>& found_;
  MemorySource pairs_{builder_testing::Pairs{{"a", "1"}}};
};

// TMPDIR, for as long as this exists.
class TemporaryFilesIn {
 public:
  explicit TemporaryFilesIn(const std::filesystem::path& folder) {
    if (const char* before = std::getenv("TMPDIR")) before_ = before;
    setenv("TMPDIR", folder.c_str(), 1);
  }
  ~TemporaryFilesIn() {
    if (before_) {
      setenv("TMPDIR", before_->c_str(), 1);
    } else {
      unsetenv("TMPDIR");
    }
  }

 private:
  std::optional<std::string> before_;
};

TEST(DryRun, KeepsPairsInAFileForItsOwnerAloneWhateverTheUmask) {
  const TemporaryFolder folder;
  std::vector<mode_t> found;
  std::vector<std::unique_ptr<KeyValueSource>> sources;
  sources.push_back(
      std::make_unique<WatchingSource>(std::filesystem::canonical(folder.path()), found));
  const mode_t before = umask(0);
  {
    const TemporaryFilesIn there(folder.path());
    EXPECT_EQ(dry_run(sources, std::nullopt, {}).survey.key_count, 1u);
  }
  umask(before);
  EXPECT_EQ(found, std::vector<mode_t>{0600});
  EXPECT_TRUE(std::filesystem::is_empty(folder.path()));
}

// A database that cannot be seen may be there.
TEST(DryRun, RefusesADirectoryThatCannotBeLookedAt) {
  const TemporaryFolder folder;
  std::filesystem::create_symlink("loop", folder / "loop");
  EXPECT_THAT(input_error_of([&] {
                dry_run(sources_of({{"a", "1"}}), folder / "loop", {});
              }),
              AllOf(HasSubstr("cannot read"), HasSubstr("loop/manifest.json")));
}

TEST(DryRun, RefusesWhatABuildWouldRefuse) {
  const TemporaryFolder folder;
  builder_testing::build({{"a", "1"}, {"b", "2"}, {"c", "3"}}, folder / "db");
  EXPECT_THAT(input_error_of([&] {
                dry_run(sources_of({{"a", "1"}}), folder / "db", {});
              }),
              HasSubstr("--allow-shrink"));
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
TEST(DryRun, CountsTheRecordsOfTheFullestShard) {
  const TemporaryFolder folder;
  publish_manifest_of_two_keys(folder.path());
  const auto dry_run_of = [&](uint32_t key_count) {
    builder_testing::Pairs pairs;
    for (uint32_t i = 0; i < key_count; ++i) pairs.emplace_back("key " + std::to_string(i), "abc");
    return dry_run(sources_of(pairs), folder.path(), {});
  };
  const DryRun kept = dry_run_of(1000);
  EXPECT_EQ(kept.why_not_kept, "");
  ASSERT_TRUE(kept.kept);
  EXPECT_EQ(kept.kept->batch, (BatchCode{2, 4}));
  EXPECT_EQ(kept.request.batch, (BatchCode{2, 4}));
  const DryRun again = dry_run_of(3000);
  EXPECT_FALSE(again.kept);
  EXPECT_THAT(again.why_not_kept, HasSubstr(" records, more than 2048 rows hold"));
  EXPECT_EQ(again.request.batch, (BatchCode{2, 4}));
}

}  // namespace
}  // namespace blindfuse
