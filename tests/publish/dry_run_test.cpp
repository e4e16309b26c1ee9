#include "host/publish/dry_run.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>

#include <cstdlib>
#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "tests/publish/builder_testing.h"
#include "tests/support.h"

namespace blindfuse {
namespace {

using builder_testing::MemorySource;
using builder_testing::TemporaryFolder;
using support::input_error_of;
using ::testing::AllOf;
using ::testing::HasSubstr;

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
  std::vector<std::unique_ptr<KeyValueSource>> sources;
  sources.push_back(std::make_unique<MemorySource>(builder_testing::Pairs{{"a", "1"}}));
  EXPECT_THAT(input_error_of([&] { dry_run(sources, folder / "loop", {}); }),
              AllOf(HasSubstr("cannot read"), HasSubstr("loop/manifest.json")));
}

TEST(DryRun, RefusesWhatABuildWouldRefuse) {
  const TemporaryFolder folder;
  builder_testing::build({{"a", "1"}, {"b", "2"}, {"c", "3"}}, folder / "db");
  std::vector<std::unique_ptr<KeyValueSource>> sources;
  sources.push_back(std::make_unique<MemorySource>(builder_testing::Pairs{{"a", "1"}}));
  EXPECT_THAT(input_error_of([&] { dry_run(sources, folder / "db", {}); }),
              HasSubstr("--allow-shrink"));
}

}  // namespace
}  // namespace blindfuse
