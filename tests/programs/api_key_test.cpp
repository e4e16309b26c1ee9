// `blindfuse api-key` replaces the file of keys, and keeps the lines that it has.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/file.h>
#include <sys/stat.h>

#include "host/server/serving/api_keys.h"
#include "tests/programs/program_testing.h"

namespace blindfuse::program_testing {
namespace {

namespace fs = std::filesystem;
using ::testing::HasSubstr;
using ::testing::MatchesRegex;
using ::testing::Not;
using ::testing::StartsWith;

class ApiKeyProgram : public ::testing::Test {
 protected:
  // The key that it prints.
  std::string add(const std::string& name, const fs::path& file) {
    const ProgramResult result = run(folder_, command(name, file));
    EXPECT_EQ(result.status, 0) << result.err;
    return result.out.substr(0, result.out.find('\n'));
  }

  static Words command(const std::string& name, const fs::path& file) {
    return {kBlindfuse, "api-key", name, "--file", file};
  }

  static mode_t mode_of(const fs::path& path) {
    struct stat status {};
    EXPECT_EQ(stat(path.c_str(), &status), 0);
    return status.st_mode & 07777;
  }

  const TemporaryFolder folder_;
  const fs::path file_ = folder_ / "keys";
};

TEST_F(ApiKeyProgram, ANewFileIsItsOwnersAlone) {
  const std::string key = add("alice", file_);
  EXPECT_EQ(mode_of(file_), 0600u);
  EXPECT_EQ(ApiKeys(file_).find("Bearer " + key), "alice");
}

TEST_F(ApiKeyProgram, KeepsWhatIsThereAndWhoMayReadIt) {
  const std::string before = "# ours\n" + api_key_line("old", "old-key");  // without its end
  write_file(file_, before);
  fs::permissions(file_, fs::perms(0640));
  const std::string key = add("alice", file_);
  EXPECT_EQ(mode_of(file_), 0640u);
  EXPECT_THAT(read_whole(file_), StartsWith(before + "\nalice sha256:"));
  EXPECT_EQ(ApiKeys(file_).find("Bearer old-key"), "old");
  EXPECT_EQ(ApiKeys(file_).find("Bearer " + key), "alice");
}

TEST_F(ApiKeyProgram, SeesAKeyBehindAByteOrderMark) {
  write_file(file_, "\xef\xbb\xbf" + api_key_line("old", "old-key") + "\n");
  EXPECT_EQ(run(folder_, {kBlindfuse, "api-key", "--list", "--file", file_}).out, "old  -\n");
  EXPECT_EQ(run(folder_, {kBlindfuse, "api-key", "old", "--revoke", "--file", file_}).status, 0);
  EXPECT_EQ(read_whole(file_), "");
}

TEST_F(ApiKeyProgram, ASymbolicLinkStaysOne) {
  write_file(file_, api_key_line("old", "old-key") + "\n");
  fs::create_symlink("keys", folder_ / "link");
  add("alice", folder_ / "link");
  EXPECT_TRUE(fs::is_symlink(folder_ / "link"));
  EXPECT_EQ(ApiKeys(file_).count(), 2u);
}

TEST_F(ApiKeyProgram, APipeGetsTheLine) {
  ASSERT_EQ(mkfifo(file_.c_str(), 0600), 0);
  const FileDescriptor pipe(open(file_.c_str(), O_RDWR | O_NONBLOCK | O_CLOEXEC));
  add("alice", file_);
  std::string line(200, '\0');
  const ssize_t size = read(pipe.get(), line.data(), line.size());
  ASSERT_GT(size, 0);
  EXPECT_THAT(line, StartsWith("alice sha256:"));
}

TEST_F(ApiKeyProgram, AFileOfAnythingElseStaysAsItIs) {
  for (const std::string& text : {std::string("dear diary\n"), std::string("#!/bin/sh\necho hi\n"),
                                  std::string("alice sha256:12\n"), std::string(5, '\0')}) {
    write_file(file_, text);
    for (const Words& more : {Words{"alice"}, {"alice", "--revoke"}, {"--list"}}) {
      const ProgramResult result =
          run(folder_, Words{kBlindfuse, "api-key", "--file", file_} + more);
      EXPECT_EQ(result.status, 1);
      EXPECT_EQ(result.out, "");
      EXPECT_THAT(result.err, HasSubstr("expected NAME sha256:HEX"));
      EXPECT_EQ(read_whole(file_), text);
    }
  }
}

TEST_F(ApiKeyProgram, ListsTheNamesWhenTheyWereMadeAndHowTheyBegin) {
  write_file(file_, "# ours\n" + api_key_line("old", "old-key") + "\n\n");
  const std::string first = add("alice", file_), second = add("old", file_);
  const ProgramResult result = run(folder_, {kBlindfuse, "api-key", "--list", "--file", file_});
  EXPECT_EQ(result.status, 0) << result.err;
  const std::string time = "  20..-..-..T..:..:..Z ";
  EXPECT_THAT(result.out, MatchesRegex("old    -\nalice" + time + first.substr(0, 10) + "\nold  " +
                                       time + second.substr(0, 10) + "\n"));
  EXPECT_EQ(ApiKeys(file_).find("Bearer " + first), "alice");
  EXPECT_THAT(read_whole(file_), Not(HasSubstr(first.substr(0, 11))));
  EXPECT_EQ(run(folder_, {kBlindfuse, "api-key", "--list", "--file", folder_ / "missing"}).status,
            1);
}

TEST_F(ApiKeyProgram, SaysThatANameHasAnotherKey) {
  EXPECT_EQ(run(folder_, command("alice", file_)).err, "");
  EXPECT_EQ(run(folder_, command("bob", file_)).err, "");
  const ProgramResult second = run(folder_, command("alice", file_));
  EXPECT_EQ(second.status, 0);
  EXPECT_EQ(
      second.err,
      "blindfuse: alice has 2 keys now, and all of them work; --revoke takes all of them out\n");
  EXPECT_EQ(ApiKeys(file_).count(), 3u);
}

TEST_F(ApiKeyProgram, RevokesEveryKeyOfANameAndNoOther) {
  const std::string others = "# alice sha256: a remark\n" + api_key_line("alice2", "x") + "\n";
  write_file(file_, others + api_key_line("alice", "1") + "\n" + api_key_line("alice", "2"));
  fs::permissions(file_, fs::perms(0640));
  const Words revoke = {kBlindfuse, "api-key", "alice", "--revoke", "--file", file_};
  const ProgramResult result = run(folder_, revoke);
  EXPECT_EQ(result.status, 0) << result.err;
  EXPECT_THAT(result.out, StartsWith("2 keys of alice revoked"));
  EXPECT_EQ(read_whole(file_), others);
  EXPECT_EQ(mode_of(file_), 0640u);
  const ProgramResult again = run(folder_, revoke);
  EXPECT_EQ(again.status, 1);
  EXPECT_THAT(again.err, HasSubstr("has no key of the name alice"));
}

TEST_F(ApiKeyProgram, TakesANameOrAList) {
  EXPECT_EQ(run(folder_, {kBlindfuse, "api-key", "--file", file_}).status, 2);
  EXPECT_EQ(run(folder_, {kBlindfuse, "api-key", "alice", "--list", "--file", file_}).status, 2);
  EXPECT_EQ(run(folder_, {kBlindfuse, "api-key", "--revoke", "--file", file_}).status, 2);
  EXPECT_FALSE(fs::exists(file_));
}

// Everybody who can read a folder or a file can lock it.
TEST_F(ApiKeyProgram, WaitsForNoLockThatOthersCanTake) {
  write_file(file_, "");
  std::vector<FileDescriptor> locked;
  for (const fs::path& path : {folder_.path(), file_}) {
    locked.emplace_back(open(path.c_str(), O_RDONLY | O_CLOEXEC));
    ASSERT_EQ(flock(locked.back().get(), LOCK_EX), 0);
  }
  add("alice", file_);
  EXPECT_EQ(run(folder_, {kBlindfuse, "api-key", "alice", "--revoke", "--file", file_}).status, 0);
}

TEST_F(ApiKeyProgram, SaysThatItWaits) {
  const fs::path lock_file = folder_ / ".keys.lock";
  std::optional<FileDescriptor> lock = try_lock(lock_file, 0600);
  ASSERT_TRUE(lock);
  EXPECT_EQ(mode_of(lock_file), 0600u);
  RunningProgram program(folder_, command("alice", file_));
  while (program.err().find("waiting for another api-key, which holds the lock ") ==
         std::string::npos) {
    ASSERT_FALSE(program.has_ended()) << program.err();
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
  lock.reset();
  EXPECT_EQ(program.wait(), 0) << program.err();
  EXPECT_FALSE(fs::exists(lock_file));
}

TEST_F(ApiKeyProgram, ManyAtOnceLoseNothing) {
  constexpr size_t kPrograms = 8;
  std::vector<std::unique_ptr<RunningProgram>> programs;
  for (size_t i = 0; i < kPrograms; ++i) {
    programs.push_back(
        std::make_unique<RunningProgram>(folder_, command("k" + std::to_string(i), file_)));
  }
  for (const auto& program : programs) EXPECT_EQ(program->wait(), 0) << program->err();
  EXPECT_EQ(ApiKeys(file_).count(), kPrograms);
}

}  // namespace
}  // namespace blindfuse::program_testing
