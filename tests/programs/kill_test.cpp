// Killing `build` at any moment leaves an epoch that loads: the old one or the new one, whole.
#include <gtest/gtest.h>

#include <cstdio>
#include <random>

#include "tests/programs/killing.h"
#include "tests/publish/packed_testing.h"

namespace blindfuse::program_testing {
namespace {

class Kill : public ::testing::Test {
 protected:
  void write_version(int keys, int version) const {
    std::string lines;
    for (int i = 0; i < keys; ++i) {
      lines += "k" + std::to_string(i) + "\tversion " + std::to_string(version) + "\n";
    }
    write_file(input_, lines);
  }

  // Builds one version, and in every round another, where the program is killed at some call: there
  // always is an epoch. At last a build comes to its end. Gives how many were killed.
  int kill_builds(const Words& options, int keys, int rounds, unsigned seed) {
    std::printf("seed %u\n", seed);
    std::mt19937 random(seed);
    const Words command = Words{kBlindfuse, "build", input_, "--output", root_} + options;
    write_version(keys, 1000);
    EXPECT_EQ(run(folder_, command).status, 0);
    write_version(keys, 1000 - 1);
    const long calls = count_calls(folder_, command);
    EXPECT_GT(calls, 40);
    std::string before = load(root_).epoch;
    int killed = 0;
    int published = 0;
    for (int version = 1001; version <= 1000 + rounds; ++version) {
      write_version(keys, version);
      const long number = std::uniform_int_distribution<long>(1, calls)(random);
      const bool was_killed = run(folder_, killed_at_call(command, number)).status == -SIGKILL;
      killed += was_killed ? 1 : 0;
      const LoadedDatabase database = load(root_);
      const auto value = look_up(database, "k17");
      EXPECT_TRUE(value);
      if (database.epoch == before) continue;
      ++published;
      EXPECT_EQ(value, "version " + std::to_string(version));
      before = database.epoch;
    }
    std::printf("%ld calls, %d builds killed, %d published before that\n", calls, killed,
                published);
    // What the killed builds left behind is cleared away by the next one.
    EXPECT_EQ(run(folder_, command).status, 0);
    EXPECT_EQ(files_in(root_), files_of(read_epoch(root_), true));
    return killed;
  }

  const TemporaryFolder folder_;
  const std::filesystem::path root_ = folder_ / "db";
  const std::filesystem::path input_ = folder_ / "a.tsv";
};

TEST_F(Kill, LeavesAWholeEpochAtAnyMoment) {
  EXPECT_GT(kill_builds({"--shards", "8", "--params", "lwe-1288"}, 3000, 40, 20'261'120), 5);
}

// Each build writes 50 MB, so there are fewer.
TEST_F(Kill, LeavesAWholePackedEpochAtAnyMoment) {
  EXPECT_GT(kill_builds({"--shards", "3", "--mode", "packed"}, 500, 7, 20'261'122), 0);
  const LoadedDatabase database = load(root_);
  ASSERT_EQ(database.packing_tables.size(), 1u);
  const auto scheduler = scheduler_of(database);
  EXPECT_EQ(ask(database, *scheduler, "k17", 1), "version 1007");
  EXPECT_EQ(ask(database, *scheduler, "k500", 2), std::nullopt);
}

// At every single call.
TEST_F(Kill, LeavesNothingThatHindersAFirstBuild) {
  write_file(input_, "k17\tv\nk18\tw\n");
  const Words command = {kBlindfuse, "build",    input_,     "--output", root_,
                         "--params", "lwe-1288", "--shards", "2"};
  const long calls = count_calls(folder_, command);
  ASSERT_GT(calls, 40);
  for (long number = 1; number <= calls; ++number) {
    std::filesystem::remove_all(root_);
    run(folder_, killed_at_call(command, number));
    const ProgramResult result = run(folder_, command);
    ASSERT_EQ(result.status, 0) << "after call " << number << ": " << result.err;
    ASSERT_EQ(look_up(load(root_), "k17"), "v");
    ASSERT_EQ(files_in(root_), files_of(read_epoch(root_), false)) << "after call " << number;
  }
}

}  // namespace
}  // namespace blindfuse::program_testing
