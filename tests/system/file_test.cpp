#include "src/system/file.h"

#include <gtest/gtest.h>

#include <array>
#include <cerrno>

#include "src/base/errors.h"
#include "tests/publish/builder_testing.h"

namespace blindfuse {
namespace {

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
