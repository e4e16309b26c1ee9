// Locks whose files are deleted and made again by others.
#include <gtest/gtest.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>
#include <filesystem>
#include <fstream>
#include <functional>
#include <utility>

#include "client/cache_folder.h"
#include "src/base/errors.h"
#include "src/system/file.h"
#include "tests/publish/builder_testing.h"

namespace {

// What happens between the opening of a lock's file and its locking, once.
std::function<void()> before_flock;  // NOLINT

// What a file system without locks answers.
int flock_error = 0;  // NOLINT

}  // namespace

// In the place of the C library's.
extern "C" int flock(int file, int operation) noexcept {
  if (const auto act = std::exchange(before_flock, nullptr)) act();
  if (flock_error != 0) {
    errno = flock_error;
    return -1;
  }
  return static_cast<int>(syscall(SYS_flock, file, operation));
}

namespace blindfuse {
namespace {

ino_t inode_of(const std::filesystem::path& path) {
  struct stat status {};
  EXPECT_EQ(stat(path.c_str(), &status), 0);
  return status.st_ino;
}

ino_t inode_of(const FileDescriptor& file) {
  struct stat status {};
  EXPECT_EQ(fstat(file.get(), &status), 0);
  return status.st_ino;
}

class FileLock : public ::testing::Test {
 protected:
  const builder_testing::TemporaryFolder folder_;
  const std::filesystem::path path_ = folder_ / "lock";
};

TEST_F(FileLock, IsHeldByOneAtATime) {
  auto first = try_lock(path_);
  ASSERT_TRUE(first);
  EXPECT_FALSE(try_lock(path_));
  first.reset();
  EXPECT_TRUE(try_lock(path_));
}

TEST_F(FileLock, IsThatOfTheFileThatOthersFind) {
  before_flock = [this] { std::filesystem::remove(path_); };
  const auto deleted = try_lock(path_);
  ASSERT_TRUE(deleted);
  EXPECT_EQ(inode_of(*deleted), inode_of(path_));
  EXPECT_FALSE(try_lock(path_)) << "the lock would be held twice";
}

TEST_F(FileLock, IsNotThatOfAFileThatWasReplaced) {
  before_flock = [this] {
    std::filesystem::rename(path_, folder_ / "old");
    std::ofstream(path_) << "new";
  };
  const auto lock = try_lock(path_);
  ASSERT_TRUE(lock);
  EXPECT_EQ(inode_of(*lock), inode_of(path_));
}

TEST_F(FileLock, IsNoneWhereTheFileSystemHasNone) {
  for (const int error : {EINVAL, ENOLCK, ENOSYS, EOPNOTSUPP}) {
    SCOPED_TRACE(error);
    flock_error = error;
    EXPECT_NO_THROW(lock_briefly(path_));
    EXPECT_NO_THROW(wait_for_lock(path_, {}));
    UseLock use(path_);
    EXPECT_FALSE(use.run_alone([] { ADD_FAILURE() << "another client may use the hints"; }));
    const auto of_a_build = try_lock(path_);
    ASSERT_TRUE(of_a_build);
    EXPECT_FALSE(of_a_build->is_open());
  }
  flock_error = EIO;
  EXPECT_THROW(lock_briefly(path_), ResourceError);
  EXPECT_THROW(UseLock{path_}, ResourceError);
  flock_error = 0;
}

}  // namespace
}  // namespace blindfuse
