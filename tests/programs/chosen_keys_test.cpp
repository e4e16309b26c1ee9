// Keys from somebody who has read the salt in the manifest.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "src/protocol/key_hash.h"
#include "tests/programs/program_testing.h"

namespace blindfuse::program_testing {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

TEST(ChosenKeys, AreWarnedOf) {
  const TemporaryFolder folder;
  std::string lines;
  for (int i = 0; i < 2000; ++i) lines += "key " + std::to_string(i) + "\tv\n";
  const std::vector<std::string> command = {
      kBlindfuse, "build", folder / "a.tsv", "--output", folder / "db", "--shards", "4"};
  write_file(folder / "a.tsv", lines);
  EXPECT_THAT(run(folder, command).err, Not(HasSubstr("the fullest")));

  KeyHasher hasher(load(folder / "db").manifest.salt);
  for (int i = 0, chosen = 0; chosen < 3000; ++i) {
    const std::string key = "chosen " + std::to_string(i);
    if (shard_of(hasher(key).shard_hash, 4) != 0) continue;
    lines += key + "\tv\n";
    ++chosen;
  }
  write_file(folder / "a.tsv", lines);
  const ProgramResult uneven = run(folder, command);
  EXPECT_EQ(uneven.status, 0);
  EXPECT_THAT(uneven.err, HasSubstr("the fullest of 4 shards has 3"));
  EXPECT_THAT(uneven.err, HasSubstr("--fresh"));

  std::vector<std::string> fresh = command;
  fresh.push_back("--fresh");
  EXPECT_THAT(run(folder, fresh).err, Not(HasSubstr("the fullest")));
}

// One shard with half as many keys again as it would have by chance.
TEST(ChosenKeys, AreWarnedOfWhereTheyAreFew) {
  const TemporaryFolder folder;
  std::string lines;
  for (int i = 0; i < 20'000; ++i) lines += "key " + std::to_string(i) + "\tv\n";
  const std::vector<std::string> command = {
      kBlindfuse, "build", folder / "a.tsv", "--output", folder / "db", "--shards", "16"};
  write_file(folder / "a.tsv", lines);
  EXPECT_THAT(run(folder, command).err, Not(HasSubstr("the fullest")));
  KeyHasher hasher(load(folder / "db").manifest.salt);
  for (int i = 0, chosen = 0; chosen < 1000; ++i) {
    const std::string key = "chosen " + std::to_string(i);
    if (shard_of(hasher(key).shard_hash, 16) != 0) continue;
    lines += key + "\tv\n";
    ++chosen;
  }
  write_file(folder / "a.tsv", lines);
  EXPECT_THAT(run(folder, command).err, HasSubstr("the fullest of 16 shards has 2"));
}

}  // namespace
}  // namespace blindfuse::program_testing
