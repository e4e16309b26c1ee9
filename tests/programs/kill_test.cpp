// Killing `build` at any moment leaves an epoch that loads: the old one or the new one, whole.
#include <gtest/gtest.h>

#include <cstdio>
#include <random>

#include "tests/programs/program_testing.h"

namespace blindfuse::testing {
namespace {

TEST(Kill, LeavesAWholeEpochAtAnyMoment) {
  constexpr unsigned kSeed = 20'261'120;
  std::printf("seed %u\n", kSeed);
  std::mt19937 random(kSeed);
  const TemporaryFolder folder;
  const auto lines_of = [](int version) {
    std::string lines;
    for (int i = 0; i < 3000; ++i) {
      lines += "k" + std::to_string(i) + "\tversion " + std::to_string(version) + "\n";
    }
    return lines;
  };
  const std::string input = write_file(folder / "a.tsv", lines_of(1000));
  const std::vector<std::string> command = {kBlindfuse, "build",       input,
                                            "--output", folder / "db", "--shards",
                                            "8",        "--params",    "lwe-1288"};
  const auto start = std::chrono::steady_clock::now();
  ASSERT_EQ(run(folder, command).status, 0);
  // How long a build takes, as far as is known: a busy machine's speed changes.
  double build_seconds =
      std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  std::string before = load(folder / "db").epoch;
  int killed = 0;
  int published = 0;
  for (int version = 1001; version < 1041; ++version) {
    write_file(folder / "a.tsv", lines_of(version));
    RunningProgram build(folder, command);
    std::uniform_real_distribution<double> delay(0, 1.25 * build_seconds);
    std::this_thread::sleep_for(std::chrono::duration<double>(delay(random)));
    build.send(SIGKILL);
    const bool was_killed = build.wait() == -SIGKILL;
    killed += was_killed ? 1 : 0;
    build_seconds *= was_killed ? 1.1 : 0.8;
    const LoadedDatabase database = load(folder / "db");
    const auto value = look_up(database, "k17");
    ASSERT_TRUE(value);
    if (database.epoch == before) continue;
    ++published;
    ASSERT_EQ(*value, "version " + std::to_string(version));
    before = database.epoch;
  }
  std::printf("%d builds killed, %d published before that\n", killed, published);
  EXPECT_GT(killed, 5);
  // What the killed builds left behind is cleared away by the next one.
  ASSERT_EQ(run(folder, command).status, 0);
  const size_t files = snapshot(folder / "db").size();
  EXPECT_EQ(files, 2u * 8 + 5);  // matrices and hints; manifest, table, samples, retired.txt, .lock
}

TEST(Kill, LeavesNothingThatHindersAFirstBuild) {
  const TemporaryFolder folder;
  std::string lines;
  for (int i = 0; i < 3000; ++i) lines += "k" + std::to_string(i) + "\tv\n";
  const std::string input = write_file(folder / "a.tsv", lines);
  const std::vector<std::string> command = {kBlindfuse,    "build",    input, "--output",
                                            folder / "db", "--shards", "8"};
  for (int delay_ms = 1; delay_ms < 120; delay_ms += 12) {
    std::filesystem::remove_all(folder / "db");
    RunningProgram build(folder, command);
    std::this_thread::sleep_for(std::chrono::milliseconds(delay_ms));
    build.send(SIGKILL);
    build.wait();
    ASSERT_EQ(run(folder, command).status, 0) << "after " << delay_ms << " ms";
    ASSERT_EQ(look_up(load(folder / "db"), "k17"), "v");
  }
}

}  // namespace
}  // namespace blindfuse::testing
