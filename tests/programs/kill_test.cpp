// Killing `build` at any moment leaves an epoch that loads: the old one or the new one, whole.
#include <gtest/gtest.h>

#include <cstdio>
#include <random>

#include "tests/build/packed_testing.h"
#include "tests/programs/program_testing.h"

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

  // Builds one version, and in every round another, where the program is killed somewhere, or has
  // ended before that: there always is an epoch. At last a build comes to its end. Gives how many
  // were killed.
  int kill_builds(const std::vector<std::string>& options, int keys, int rounds, unsigned seed) {
    std::printf("seed %u\n", seed);
    std::mt19937 random(seed);
    std::vector<std::string> command = {kBlindfuse, "build", input_, "--output", root_};
    command.insert(command.end(), options.begin(), options.end());
    write_version(keys, 1000);
    const auto start = std::chrono::steady_clock::now();
    EXPECT_EQ(run(folder_, command).status, 0);
    // How long a build takes, as far as is known: a busy machine's speed changes.
    double build_seconds =
        std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
    std::string before = load(root_).epoch;
    int killed = 0;
    int published = 0;
    for (int version = 1001; version <= 1000 + rounds; ++version) {
      write_version(keys, version);
      RunningProgram build(folder_, command);
      std::uniform_real_distribution<double> delay(0, 1.25 * build_seconds);
      std::this_thread::sleep_for(std::chrono::duration<double>(delay(random)));
      build.send(SIGKILL);
      const bool was_killed = build.wait() == -SIGKILL;
      killed += was_killed ? 1 : 0;
      build_seconds *= was_killed ? 1.1 : 0.8;
      const LoadedDatabase database = load(root_);
      const auto value = look_up(database, "k17");
      EXPECT_TRUE(value);
      if (database.epoch == before) continue;
      ++published;
      EXPECT_EQ(value, "version " + std::to_string(version));
      before = database.epoch;
    }
    std::printf("%d builds killed, %d published before that\n", killed, published);
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

TEST_F(Kill, LeavesNothingThatHindersAFirstBuild) {
  std::string lines;
  for (int i = 0; i < 3000; ++i) lines += "k" + std::to_string(i) + "\tv\n";
  write_file(input_, lines);
  const std::vector<std::string> command = {kBlindfuse, "build",    input_, "--output",
                                            root_,      "--shards", "8"};
  for (int delay_ms = 1; delay_ms < 120; delay_ms += 12) {
    std::filesystem::remove_all(root_);
    RunningProgram build(folder_, command);
    std::this_thread::sleep_for(std::chrono::milliseconds(delay_ms));
    build.send(SIGKILL);
    build.wait();
    ASSERT_EQ(run(folder_, command).status, 0) << "after " << delay_ms << " ms";
    ASSERT_EQ(look_up(load(root_), "k17"), "v");
  }
}

}  // namespace
}  // namespace blindfuse::program_testing
