#include "host/publish/locked_directory.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "src/base/errors.h"
#include "tests/publish/builder_testing.h"

namespace blindfuse::builder_testing {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::UnorderedElementsAre;

// A name that is mistyped does not become a tree of folders.
TEST(LockedDirectory, MakesNoFolderAroundItsOwn) {
  const TemporaryFolder folder;
  EXPECT_THAT(build_refusal({{"a", "b"}}, folder / "typo" / "db"),
              AllOf(HasSubstr("typo/db: No such file or directory"), HasSubstr("make the folder")));
  EXPECT_FALSE(std::filesystem::exists(folder / "typo"));
}

TEST(LockedDirectory, LeavesFilesAloneThatOnlyLookLikeItsOwn) {
  const TemporaryFolder folder;
  Pairs pairs = {{"a", "1"}, {"b", "2"}, {"c", "3"}};
  build(pairs, folder / "db");
  const std::string content(64, 'a');
  const std::vector<std::string> names = {"shards/" + content + ".matrix",
                                          "hints/" + content + ".hint",
                                          "shards/.pending-0123456789abcdef01234567",
                                          ".pending-0123456789abcdef01234567", "letter.txt"};
  for (const std::string& name : names) std::ofstream(folder / "db" / name) << "dear";
  pairs[1].second = "new";
  // The letter needs no warning.
  EXPECT_THAT(build(pairs, folder / "db").unclaimed_files,
              UnorderedElementsAre(names[0], names[1], names[2], names[3]));
  BuildOptions options;
  options.fresh = true;
  build(pairs, folder / "db", options);
  EXPECT_THROW(build({}, folder / "db"), InputError);
  for (const std::string& name : names) {
    EXPECT_EQ(read_whole(folder / "db" / name), "dear") << name;
  }
}

// A file that a killed build left, and somebody has written again since.
TEST(LockedDirectory, LeavesAJournalledFileAloneThatIsAnotherNow) {
  const TemporaryFolder folder;
  build({{"a", "b"}}, folder / "db");
  const std::string name = "shards/" + std::string(64, 'a') + ".matrix";
  const std::filesystem::path path = folder / "db" / name;
  std::ofstream(path) << "left";
  const OpenFolder root(folder / "db");
  BuildJournal(root).add_file(name, identity_of(open_for_reading(path), path));
  std::filesystem::rename(path, folder / "left");  // so that its inode is not free
  std::ofstream(path) << "mine";
  build({{"a", "c"}}, folder / "db");
  EXPECT_EQ(read_whole(path), "mine");
}

TEST(LockedDirectory, RefusesACopyWhoseManifestHasNotCome) {
  const TemporaryFolder folder;
  build({{"a", "b"}}, folder / "db");
  std::filesystem::rename(folder / "db" / "manifest.json", folder / "manifest.json");
  const auto before = snapshot(folder / "db");
  for (const bool fresh : {false, true}) {
    BuildOptions options;
    options.fresh = fresh;
    EXPECT_THAT(build_refusal({{"a", "c"}}, folder / "db", options),
                AllOf(HasSubstr("not a database"), HasSubstr("holds \"hints/"), HasSubstr("3 more"),
                      HasSubstr("wait for its manifest")));
    EXPECT_EQ(snapshot(folder / "db"), before);
  }
  std::filesystem::rename(folder / "manifest.json", folder / "db" / "manifest.json");
  EXPECT_EQ(look_up(load(folder / "db"), "a"), "b");
}

TEST(LockedDirectory, WritesThroughNoSymbolicLink) {
  const TemporaryFolder folder;
  build({{"a", "b"}}, folder / "db");
  std::filesystem::rename(folder / "db" / "shards", folder / "elsewhere");
  std::filesystem::create_directory_symlink(folder / "elsewhere", folder / "db" / "shards");
  const auto before = snapshot(folder.path());
  EXPECT_THAT(build_refusal({{"a", "c"}}, folder / "db"),
              AllOf(HasSubstr("shards is a symbolic link"), HasSubstr("move it away")));
  EXPECT_EQ(snapshot(folder.path()), before);

  std::filesystem::create_directory(folder / "new");
  std::filesystem::create_symlink(folder / "elsewhere" / "lock", folder / "new" / ".lock");
  EXPECT_THAT(build_refusal({{"a", "c"}}, folder / "new"), HasSubstr("cannot lock"));
  EXPECT_EQ(snapshot(folder.path()), before);
}

// A file has the name of what is built, and another content: its owner is unknown.
TEST(LockedDirectory, DoesNotReplaceAFileThatNoBuildMade) {
  const TemporaryFolder folder;
  const Pairs pairs = {{"a", "1"}, {"b", "2"}, {"c", "3"}};
  BuildOptions options;
  options.shard_count = 1;
  build(pairs, folder / "db", options);
  Pairs changed = pairs;
  changed[1].second = "new";
  std::filesystem::copy(folder / "db", folder / "other", std::filesystem::copy_options::recursive);
  options.random = fixed_random;  // two builds make the same file
  build(changed, folder / "other", options);
  const std::string name =
      DatabaseDirectory::matrix_name(load(folder / "other").table.shards[0].matrix);
  std::ofstream(folder / "db" / "shards" / name) << "mine";
  const auto before = snapshot(folder / "db");
  EXPECT_THAT(build_refusal(changed, folder / "db", options),
              AllOf(HasSubstr(name), HasSubstr("in the way"), HasSubstr("move it away")));
  EXPECT_EQ(snapshot(folder / "db"), before);
}

// Otherwise each attempt on a full disk leaves less room for the next.
TEST(LockedDirectory, LeavesNothingNextToADamagedDatabaseWhenABuildFails) {
  const TemporaryFolder folder;
  const Pairs pairs = {{"a", "1"}, {"b", "2"}};
  build(pairs, folder / "db");
  BuildOptions options;
  options.fresh = true;
  options.shard_count = 1;
  options.random = fixed_random;
  // Fails when its shards are there, since its hint is not what has that name.
  build(pairs, folder / "other", options);
  const auto hint = std::filesystem::directory_iterator(folder / "other" / "hints")->path();
  std::ofstream(folder / "db" / "hints" / hint.filename()) << "mine";
  const auto table = std::filesystem::directory_iterator(folder / "db" / "tables")->path();
  for (const std::filesystem::path& damaged : {table, folder / "db" / "manifest.json"}) {
    std::ofstream(damaged, std::ios::app) << "!";
    const auto before = snapshot(folder / "db");
    EXPECT_THAT(build_refusal(pairs, folder / "db", options), HasSubstr("in the way")) << damaged;
    EXPECT_EQ(snapshot(folder / "db"), before) << damaged;
  }
  std::filesystem::remove(folder / "db" / "hints" / hint.filename());
  build(pairs, folder / "db", options);
  EXPECT_EQ(look_up(load(folder / "db"), "a"), "1");
}

TEST(LockedDirectory, ForgetsTheOldestOfAThousandRetiredEpochs) {
  const TemporaryFolder folder;
  build({{"a", "b"}}, folder / "db");
  const std::filesystem::path retired = folder / "db" / "retired.txt";
  std::vector<std::string> ids;
  for (char digit : {'0', '1', '2', '3', '4', '5', '6', '7', '8', '9'}) {
    for (int i = 100; i < 200; ++i) ids.push_back(std::string(61, digit) + std::to_string(i));
  }
  {
    std::ofstream file(retired);
    for (const std::string& id : ids) file << id << "\n";
  }
  ids.push_back(load(folder / "db").epoch);
  build({{"a", "c"}}, folder / "db");
  std::string expected;
  for (size_t i = 1; i < ids.size(); ++i) expected += ids[i] + "\n";
  EXPECT_EQ(read_whole(retired), expected);
}

TEST(LockedDirectory, ReplacesNoManifestThatIsNotOne) {
  const TemporaryFolder folder;
  const std::filesystem::path manifest = folder / "db" / "manifest.json";
  BuildOptions options;
  options.fresh = true;
  const auto refusal = [&] { return build_refusal({{"a", "c"}}, folder / "db", options); };
  build({{"a", "b"}}, folder / "db");
  std::ofstream(manifest) << "{\"name\": \"somebody else's\"}";
  EXPECT_THAT(refusal(), AllOf(HasSubstr("not that of a database"), HasSubstr("move it away")));
  EXPECT_THAT(read_whole(manifest), HasSubstr("somebody"));
  std::filesystem::remove(manifest);
  std::filesystem::create_directory(manifest);
  EXPECT_THAT(refusal(), AllOf(HasSubstr("is a folder"), HasSubstr("move it away")));
  std::filesystem::remove(manifest);
  std::filesystem::create_symlink("manifest.json", manifest);
  EXPECT_THAT(refusal(), AllOf(HasSubstr("is a symbolic link"), HasSubstr("move it away")));
  EXPECT_TRUE(std::filesystem::is_symlink(manifest));
}

// No server could load the epoch.
TEST(LockedDirectory, RefusesADamagedListOfRetiredEpochs) {
  const TemporaryFolder folder;
  build({{"a", "b"}}, folder / "db");
  build({{"a", "c"}}, folder / "db");
  const std::filesystem::path retired = folder / "db" / "retired.txt";
  std::ofstream(retired, std::ios::app) << "not an id\n";
  const auto before = snapshot(folder / "db");
  for (const char* value : {"c", "d"}) {  // the same again, or another epoch
    EXPECT_THAT(build_refusal({{"a", value}}, folder / "db"),
                AllOf(HasSubstr("retired.txt is altered"), HasSubstr("line 2"),
                      HasSubstr("delete the file")));
    EXPECT_EQ(snapshot(folder / "db"), before);
  }
  std::filesystem::remove(retired);
  build({{"a", "d"}}, folder / "db");
  EXPECT_EQ(look_up(load(folder / "db"), "a"), "d");
}

}  // namespace
}  // namespace blindfuse::builder_testing
