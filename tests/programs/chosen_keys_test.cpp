// Keys from somebody who has read the salt in the manifest.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "src/protocol/key_hash.h"
#include "tests/programs/program_testing.h"

namespace blindfuse::program_testing {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;

// Many of one shard; and few, with which it has half as many keys again as by chance.
TEST(ChosenKeys, AreWarnedOf) {
  struct Case {
    int keys;
    uint32_t shards;
    int chosen;
    const char* warning;
  };
  for (const Case& some : {Case{2000, 4, 3000, "the fullest of 4 shards has 3"},
                           Case{20'000, 16, 1000, "the fullest of 16 shards has 2"}}) {
    const TemporaryFolder folder;
    std::string lines;
    for (int i = 0; i < some.keys; ++i) lines += "key " + std::to_string(i) + "\tv\n";
    std::vector<std::string> command = {
        kBlindfuse,    "build",    folder / "a.tsv",           "--output",
        folder / "db", "--shards", std::to_string(some.shards)};
    write_file(folder / "a.tsv", lines);
    EXPECT_THAT(run(folder, command).err, Not(HasSubstr("the fullest")));

    KeyHasher hasher(load(folder / "db").manifest.salt);
    for (int i = 0, chosen = 0; chosen < some.chosen; ++i) {
      const std::string key = "chosen " + std::to_string(i);
      if (shard_of(hasher(key).shard_hash, some.shards) != 0) continue;
      lines += key + "\tv\n";
      ++chosen;
    }
    write_file(folder / "a.tsv", lines);
    const ProgramResult uneven = run(folder, command);
    EXPECT_EQ(uneven.status, 0);
    EXPECT_THAT(uneven.err, AllOf(HasSubstr(some.warning), HasSubstr("--fresh")));
    command.push_back("--fresh");
    EXPECT_THAT(run(folder, command).err, Not(HasSubstr("the fullest")));
  }
}

}  // namespace
}  // namespace blindfuse::program_testing
