#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <array>
#include <cerrno>

#include "src/base/errors.h"
#include "src/system/file.h"
#include "src/system/open_folder.h"
#include "tests/publish/builder_testing.h"

namespace blindfuse {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

namespace fs = std::filesystem;

class Folder : public ::testing::Test {
 protected:
  std::string refusal_of(const std::string& name) const {
    return support::input_error_of([&] { open_.find_folder(name); });
  }

  void write(const fs::path& path, const std::string& text) const { std::ofstream(path) << text; }

  const builder_testing::TemporaryFolder folder_;
  const OpenFolder open_{folder_.path()};
};

TEST_F(Folder, FollowsNoLink) {
  fs::create_directory(folder_ / "real");
  fs::create_directory_symlink(folder_ / "real", folder_ / "link");
  fs::create_symlink("loop", folder_ / "loop");
  write(folder_ / "file", "");
  EXPECT_TRUE(open_.find_folder("real"));
  EXPECT_FALSE(open_.find_folder("missing"));
  EXPECT_THAT(refusal_of("link"), HasSubstr("link is a symbolic link"));
  EXPECT_THAT(refusal_of("loop"), HasSubstr("loop is a symbolic link"));
  EXPECT_THAT(refusal_of("file"), HasSubstr("file is not a folder"));
  EXPECT_EQ(open_.status("link")->kind, EntryKind::kLink);
  EXPECT_EQ(open_.status("loop")->kind, EntryKind::kLink);
  EXPECT_THAT(open_.names(), ElementsAre("file", "link", "loop", "real"));
  write(folder_ / "real" / "inside", "x");
  fs::create_symlink("real/inside", folder_ / "shortcut");
  EXPECT_THROW(open_.open_file("shortcut", O_RDONLY), InputError);
  EXPECT_THROW(open_.create_file("shortcut"), ResourceError);
}

TEST_F(Folder, StaysTheSameWhenItsPathIsAnothers) {
  fs::create_directory(folder_ / "a");
  const OpenFolder a(folder_ / "a");
  fs::rename(folder_ / "a", folder_ / "b");
  fs::create_directory(folder_ / "a");
  write(folder_ / "a" / "file", "another's");
  a.create_file("file");
  EXPECT_TRUE(a.remove_file("file"));
  EXPECT_TRUE(fs::exists(folder_ / "a" / "file"));
  EXPECT_FALSE(fs::exists(folder_ / "b" / "file"));
  EXPECT_EQ(a.identity(), OpenFolder(folder_ / "b").identity());
  EXPECT_NE(a.identity(), OpenFolder(folder_ / "a").identity());
}

TEST_F(Folder, RenamesOnlyToAFreeName) {
  write(folder_ / "new", "new");
  write(folder_ / "taken", "old");
  fs::create_symlink("nowhere", folder_ / "dangling");
  EXPECT_FALSE(open_.rename_if_free("new", "taken"));
  EXPECT_FALSE(open_.rename_if_free("new", "dangling"));
  EXPECT_EQ(builder_testing::read_whole(folder_ / "taken"), "old");
  EXPECT_TRUE(open_.rename_if_free("new", "free"));
  EXPECT_EQ(builder_testing::read_whole(folder_ / "free"), "new");
  open_.rename_over("free", "taken");
  EXPECT_EQ(builder_testing::read_whole(folder_ / "taken"), "new");
}

TEST_F(Folder, TellsAFileFromAnotherOfItsName) {
  write(folder_ / "file", "one");
  const FileIdentity before = open_.status("file")->identity;
  EXPECT_EQ(identity_of(open_.open_file("file", O_RDONLY), "file"), before);
  fs::rename(folder_ / "file", folder_ / "renamed");
  EXPECT_EQ(open_.status("renamed")->identity, before);
  write(folder_ / "file", "two");
  EXPECT_FALSE(open_.status("file")->identity == before);
  fs::last_write_time(folder_ / "renamed",
                      fs::file_time_type::clock::now() + std::chrono::hours(1));
  EXPECT_FALSE(open_.status("renamed")->identity == before);
}

// What reads as an error of the device: a process's own memory, where nothing is mapped.
TEST(ReadingTest, ADeviceThatFailsIsNoBadInput) {
  const FileDescriptor memory = open_for_reading("/proc/self/mem");
  std::array<uint8_t, 8> bytes{};
  try {
    read_exactly(memory, 0, bytes, "/proc/self/mem");
    FAIL() << "nothing is mapped there";
  } catch (const ResourceError& error) {
    EXPECT_STREQ(error.what(), "cannot read /proc/self/mem: Input/output error");
  }
}

TEST(ReadingTest, TextThatPeopleEditIsWithoutItsByteOrderMark) {
  const builder_testing::TemporaryFolder folder;
  for (const std::string text : {"", "a", "\xef\xbb", "a\xef\xbb\xbf", "text\n"}) {
    std::ofstream(folder / "file", std::ios::binary) << text;
    EXPECT_EQ(read_text_file(folder / "file", 100), text);
    std::ofstream(folder / "file", std::ios::binary) << "\xef\xbb\xbf" << text;
    EXPECT_EQ(read_text_file(folder / "file", 100), text);
  }
}

TEST(ReadingTest, TellsWhatPassesFromWhatStays) {
  for (const int error : {EMFILE, ENFILE, ENOMEM, EIO, ESTALE, ENOTCONN, ETIMEDOUT, EAGAIN}) {
    EXPECT_TRUE(is_passing_error(error)) << error;
  }
  for (const int error : {ENOENT, EACCES, ENOTDIR, ELOOP, EISDIR, EINVAL, 0}) {
    EXPECT_FALSE(is_passing_error(error)) << error;
  }
}

}  // namespace
}  // namespace blindfuse
