// `blindfuse build`, `plan` and `inspect` from the outside: what goes in, what comes out, and what
// is left on disk.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "host/database/directory.h"
#include "host/publish/samples.h"
#include "src/protocol/key_hash.h"
#include "tests/programs/program_testing.h"

namespace blindfuse::program_testing {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;

struct InputErrorCase {
  const char* name;
  const char* file_name;
  const char* content;
  Words arguments;
  const char* message;  // a part of it
  int status = 1;
};

void PrintTo(const InputErrorCase& bad, std::ostream* out) { *out << bad.name; }

class BuildRefuses : public ::testing::TestWithParam<InputErrorCase> {};

TEST_P(BuildRefuses, WithOneClearLineAndNothingOnDisk) {
  const TemporaryFolder folder;
  const std::string input = write_file(folder / GetParam().file_name, GetParam().content);
  const Words arguments =
      Words{kBlindfuse, "build", input, "--output", folder / "db"} + GetParam().arguments;
  const ProgramResult result = run(folder, arguments);
  EXPECT_EQ(result.status, GetParam().status) << result.err;
  EXPECT_THAT(result.err, HasSubstr(GetParam().message));
  EXPECT_EQ(std::ranges::count(result.err, '\n'), 1) << result.err;
  EXPECT_EQ(result.out, "");
  EXPECT_FALSE(std::filesystem::exists(folder / "db"));
}

INSTANTIATE_TEST_SUITE_P(
    Cases, BuildRefuses,
    ::testing::Values(
        InputErrorCase{"Empty", "a.tsv", "", {}, "empty"},
        InputErrorCase{"NoTab", "a.tsv", "a\tb\nc\n", {}, "line 2"},
        InputErrorCase{
            "Duplicate", "a.tsv", "a\tb\nc\td\na\te\n", {}, "the key \"a\" comes twice: "},
        InputErrorCase{"BadUtf8", "a.tsv", "a\t\xff\n", {}, "line 1"},
        InputErrorCase{"BadHex", "a.tsv", "a\t0g\n", {"--value-encoding", "hex"}, "line 1"},
        InputErrorCase{"BadBase64", "a.tsv", "a\tZ\n", {"--value-encoding", "base64"}, "line 1"},
        InputErrorCase{"TooLong", "a.tsv", "a\tbcd\n", {"--value-bytes-max", "2"}, "3 bytes"},
        InputErrorCase{"EmptyValues", "a.tsv", "\n\n", {"--index"}, "every value is empty"},
        InputErrorCase{"NoColumn", "a.csv", "key,text\na,b\n", {}, "value"},
        InputErrorCase{"BrokenRow", "a.csv", "key,value\na,b\nc\n", {}, "line 3"},
        InputErrorCase{"NotJson", "a.ndjson", "{\"key\":\"a\",\"value\":\"b\"}\n{\n", {}, "line 2"},
        InputErrorCase{"NotSqlite",
                       "a.sqlite",
                       "hello, this is a text, not a database",
                       {"--sqlite-query", "select k, v from t"},
                       "a.sqlite"},
        InputErrorCase{"NoFormat", "a.txt", "a\tb\n", {}, "--format"},
        InputErrorCase{"NoEngine", "a.tsv", "a\tb\n", {"--engine", "warp"}, "warp", 2},
        InputErrorCase{"NoKernel", "a.tsv", "a\tb\n", {"--engine", "cpu:warp"}, "portable", 2}),
    [](const auto& test) { return test.param.name; });

TEST(BuildProgram, ReadsEveryFormat) {
  const TemporaryFolder folder;
  const std::string sql = folder / "a.sqlite";
  ASSERT_EQ(run(folder, {"sqlite3", sql,
                         "create table t(k text, v blob); insert into t values('a', x'31'), "
                         "('b', '2');"})
                .status,
            0);
  const std::vector<Words> inputs = {
      {write_file(folder / "a.tsv", "a\t1\nb\t2\n")},
      {write_file(folder / "a.csv", "id,word,text\n1,a,1\n2,\"b\",\"2\"\n"), "--key-column", "word",
       "--value-column", "text"},
      {write_file(folder / "a.ndjson",
                  "{\"word\":\"a\",\"text\":\"1\"}\n{\"text\":\"2\",\"word\":\"b\"}\n"),
       "--key-column", "word", "--value-column", "text"},
      {write_file(folder / "hex.tsv", "61\t31\n62\t32\n"), "--key-encoding", "hex",
       "--value-encoding", "hex"},
      {write_file(folder / "base64.tsv", "YQ==\tMQ==\nYg==\tMg==\n"), "--key-encoding", "base64",
       "--value-encoding", "base64"},
      {write_file(folder / "first.tsv", "a\t1\n"), write_file(folder / "second.tsv", "b\t2\n")},
      {sql, "--sqlite-query", "select k, v from t"},
      {"-", "--format", "tsv"},
  };
  for (const Words& input : inputs) {
    std::filesystem::remove_all(folder / "db");
    const ProgramResult result =
        run(folder, Words{kBlindfuse, "build", "--output", folder / "db"} + input, "a\t1\nb\t2\n");
    ASSERT_EQ(result.status, 0) << result.err;
    const LoadedDatabase database = load(folder / "db");
    EXPECT_EQ(look_up(database, "a"), "1") << input[0];
    EXPECT_EQ(look_up(database, "b"), "2") << input[0];
  }
}

TEST(BuildProgram, WarnsOfLookUpsThatDoNotCount) {
  const TemporaryFolder folder;
  const std::string input = write_file(folder / "a.tsv", "a\t1\nb\t2\n");
  Words command = {kBlindfuse, "build", input, "--output", folder / "db"};
  EXPECT_THAT(run(folder, command).err, Not(HasSubstr("--lookups-per-client")));
  EXPECT_THAT(run(folder, command).err, Not(HasSubstr("--lookups-per-client")));
  command.insert(command.end(), {"--lookups-per-client", "7"});
  EXPECT_THAT(run(folder, command).err,
              HasSubstr("--lookups-per-client counts only for a new directory or with --fresh"));
  command.emplace_back("--fresh");
  EXPECT_THAT(run(folder, command).err, Not(HasSubstr("--lookups-per-client")));
}

TEST(BuildProgram, SaysWhatPackedResponsesTake) {
  const TemporaryFolder folder;
  const std::string input = write_file(folder / "a.tsv", "a\t1\nb\t2\n");
  const Words command = {kBlindfuse, "build", input, "--output", folder / "db"};
  const ProgramResult made = run(folder, command + Words{"--mode", "packed", "--shards", "2"});
  ASSERT_EQ(made.status, 0) << made.err;
  EXPECT_THAT(made.out, HasSubstr("2 of 2 shards rebuilt, 1 of 1 pack; a new epoch"));
  EXPECT_THAT(made.out, HasSubstr("kB of masks once an epoch"));
  EXPECT_THAT(made.out, HasSubstr("the server also keeps 25.1 MB of packing tables"));
  EXPECT_THAT(made.err, HasSubstr("packed mode"));
  EXPECT_THAT(made.err, HasSubstr(" s, packs "));
  // Without being asked it stays in this mode.
  const auto report = nlohmann::json::parse(run(folder, command + Words{"--json"}).out);
  EXPECT_EQ(report["layout"]["mode"], "packed");
  EXPECT_EQ(report["epoch"], load(folder / "db").epoch);
  EXPECT_EQ(report["packs_rebuilt"], 0);
  EXPECT_EQ(report["changed"], false);
  const std::string inspected = run(folder, {kBlindfuse, "inspect", folder / "db"}).out;
  EXPECT_THAT(inspected, HasSubstr("mode           packed\n"));
  EXPECT_THAT(inspected, HasSubstr("packs          1 of up to 1024 columns, with 25.1 MB"));
  EXPECT_THAT(inspected, HasSubstr("table          288 B once an epoch\n"));
  EXPECT_THAT(inspected, HasSubstr("masks          "));
  const auto found =
      nlohmann::json::parse(run(folder, {kBlindfuse, "inspect", folder / "db", "--json"}).out);
  EXPECT_EQ(found["mode"], "packed");
  EXPECT_EQ(found["table_bytes"], 2 * 112 + 64);
  EXPECT_EQ(found["packing_table_bytes"], 25'141'248);
  EXPECT_THAT(run(folder, command + Words{"--mode", "hint"}).err, HasSubstr("the mode changed"));
}

TEST(BuildProgram, WarnsOfValuesOfVeryDifferentLengths) {
  const TemporaryFolder folder;
  std::string lines;
  for (int i = 0; i < 500; ++i) lines += "k" + std::to_string(i) + "\tshort\n";
  const std::string input =
      write_file(folder / "a.tsv", lines + "long\t" + std::string(3000, 'x') + "\n");
  const ProgramResult result =
      run(folder, {kBlindfuse, "build", input, "--output", folder / "db", "--mode", "hint"});
  EXPECT_THAT(result.err, HasSubstr("median 5 bytes, 99 % at most 5, longest 3000"));
  EXPECT_THAT(result.err, HasSubstr("--value-bytes-max 5"));
}

TEST(BuildProgram, SaysWhenKeysAreGone) {
  const TemporaryFolder folder;
  std::string lines;
  for (int i = 0; i < 1000; ++i) {
    lines += "k" + std::to_string(i) + "\t" + std::string(300, 'v') + "\n";
  }
  const std::string input = write_file(folder / "a.tsv", lines);
  Words command = {kBlindfuse, "build", input, "--output", folder / "db", "--mode", "packed"};
  const ProgramResult first = run(folder, command);
  EXPECT_THAT(first.out, Not(HasSubstr("before")));
  EXPECT_THAT(first.err, Not(HasSubstr("clients that download")));
  const auto before = snapshot(folder / "db");
  write_file(folder / "a.tsv", lines.substr(0, lines.find('\n') + 1));
  const ProgramResult refused = run(folder, command);
  EXPECT_EQ(refused.status, 1);
  EXPECT_THAT(refused.err, HasSubstr("the input has 1 key, and "));
  EXPECT_EQ(snapshot(folder / "db"), before);
  const ProgramResult allowed = run(folder, command + Words{"--allow-shrink", "--allow-padding"});
  EXPECT_EQ(allowed.status, 0) << allowed.err;
  EXPECT_THAT(allowed.out, HasSubstr("db: 1 key (1000 before), "));
  EXPECT_THAT(allowed.err, HasSubstr("kB for its first look-up in an epoch, and all keys and "
                                     "values have 302 B: clients that download them"));
}

TEST(BuildProgram, FailsCleanlyWhenTheDiskIsFull) {
  const TemporaryFolder folder;
  const std::string small = write_file(folder / "small.tsv", "a\tb\n");
  ASSERT_EQ(run(folder, {kBlindfuse, "build", small, "--output", folder / "db"}).status, 0);
  const auto before = snapshot(folder / "db");
  std::string lines;
  lines = "long\t" + std::string(200, 'x') + "\n";  // makes the matrix larger than the spool
  for (int i = 0; i < 20'000; ++i) lines += "key " + std::to_string(i) + "\tvalue\n";
  const std::string large = write_file(folder / "large.tsv", lines);
  // A limit on file sizes fails the write as a full disk does. In units of 512 bytes: some leave
  // room for the spool, but not for the matrix.
  for (const char* limit : {"1", "100", "2600"}) {
    const ProgramResult result =
        run(folder, {"sh", "-c", "ulimit -f \"$1\"; shift; exec \"$@\"", "sh", limit, kBlindfuse,
                     "build", large, "--output", folder / "db", "--fresh", "--shards", "1"});
    EXPECT_EQ(result.status, 1) << limit;
    EXPECT_THAT(result.err, HasSubstr("cannot write"));
    EXPECT_EQ(snapshot(folder / "db"), before) << limit;
  }
}

TEST(BuildProgram, FollowsTheUmaskOnAllThreads) {
  const TemporaryFolder folder;
  std::string lines;
  for (int i = 0; i < 20'000; ++i) lines += "key " + std::to_string(i) + "\tv\n";
  const std::string input = write_file(folder / "a.tsv", lines);
  const ProgramResult result = run(
      folder, {"sh", "-c", "umask 027; exec \"$@\"", "sh", kBlindfuse, "build", input, "--output",
               folder / "db", "--shards", "200", "--threads", "8", "--params", "lwe-1288"});
  ASSERT_EQ(result.status, 0) << result.err;
  for (const auto& entry : std::filesystem::recursive_directory_iterator(folder / "db")) {
    const auto mode = entry.status().permissions();
    const auto group_write_and_others = std::filesystem::perms(027);
    EXPECT_EQ(mode & group_write_and_others, std::filesystem::perms::none) << entry.path();
    EXPECT_NE(mode & std::filesystem::perms::group_read, std::filesystem::perms::none)
        << entry.path();
  }
}

TEST(BuildProgram, LeavesNoFoldersBehindWhenItFails) {
  const TemporaryFolder folder;
  const std::string input = write_file(folder / "a.tsv", "");
  std::filesystem::create_directory(folder / "empty");
  EXPECT_EQ(run(folder, {kBlindfuse, "build", input, "--output", folder / "new"}).status, 1);
  EXPECT_FALSE(std::filesystem::exists(folder / "new"));
  EXPECT_EQ(run(folder, {kBlindfuse, "build", input, "--output", folder / "empty"}).status, 1);
  EXPECT_TRUE(std::filesystem::is_empty(folder / "empty"));
}

// Nothing suggests to replace what a newer program made.
TEST(BuildProgram, SaysThatANewerProgramMadeADatabase) {
  const TemporaryFolder folder;
  const std::string input = write_file(folder / "a.tsv", "tea\thot leaf juice\n");
  const Words build = {kBlindfuse, "build", input, "--output", folder / "db"};
  ASSERT_EQ(run(folder, build).status, 0);
  std::string manifest = read_whole(folder / "db" / "manifest.json");
  manifest.replace(manifest.find("blindfuse/1"), 11, "blindfuse/9");
  write_file(folder / "db" / "manifest.json", manifest);
  for (const Words& command :
       {build, {kBlindfuse, "inspect", folder / "db"}, {kBlindfuse, "serve", folder / "db"}}) {
    const ProgramResult result = run(folder, command);
    EXPECT_EQ(result.status, 1);
    EXPECT_THAT(result.err, HasSubstr("db was made by a newer blindfuse; this is 0."));
    EXPECT_THAT(result.err, AllOf(HasSubstr("\"blindfuse/9\""), Not(HasSubstr("--fresh"))));
    EXPECT_EQ(read_whole(folder / "db" / "manifest.json"), manifest);
  }
  Words fresh = build;
  fresh.push_back("--fresh");
  EXPECT_EQ(run(folder, fresh).status, 0);
}

TEST(BuildProgram, AFileIsNoDatabase) {
  const TemporaryFolder folder;
  const std::string input = write_file(folder / "a.tsv", "tea\thot leaf juice\n");
  for (const char* command : {"inspect", "serve"}) {
    const ProgramResult result = run(folder, {kBlindfuse, command, input});
    EXPECT_EQ(result.status, 1);
    EXPECT_THAT(result.err, HasSubstr(input + " is a file, not a database; `blindfuse build"));
  }
  EXPECT_THAT(run(folder, {kBlindfuse, "build", input, "--output", input}).err,
              HasSubstr(input + " is a file; --output takes"));
}

TEST(BuildProgram, InspectSaysWhenTheEpochWasPublished) {
  const TemporaryFolder folder;
  const std::string input = write_file(folder / "a.tsv", "tea\thot leaf juice\n");
  ASSERT_EQ(run(folder, {kBlindfuse, "build", input, "--output", folder / "db"}).status, 0);
  const Words inspect = {kBlindfuse, "inspect", folder / "db"};
  run(folder, {"touch", "-d", "2026-01-02T03:04:05Z", folder / "db" / "manifest.json"});
  EXPECT_THAT(run(folder, inspect).out,
              HasSubstr("published      2026-01-02T03:04:05Z (time of manifest.json)\n"));
  const auto json =
      nlohmann::json::parse(run(folder, {kBlindfuse, "inspect", folder / "db", "--json"}).out);
  EXPECT_EQ(json["published"], 1'767'323'045);
  EXPECT_EQ(json["published_utc"], "2026-01-02T03:04:05Z");
}

TEST(BuildProgram, IgnoresAVersionInTheEnvironment) {
  const TemporaryFolder folder;
  const ProgramResult result = run(folder, {"env", "BLINDFUSE_VERSION=1.2.3", kBlindfuse, "plan",
                                            "--keys", "100", "--value-bytes", "3"});
  EXPECT_EQ(result.status, 0);
  EXPECT_THAT(result.out, HasSubstr("Recommended: "));
}

TEST(InspectProgram, VerifiesThroughTheRealClient) {
  const TemporaryFolder folder;
  std::string lines;
  for (int i = 0; i < 100; ++i) lines += "k" + std::to_string(i) + "\tv" + std::to_string(i) + "\n";
  const std::string input = write_file(folder / "a.tsv", lines);
  ASSERT_EQ(run(folder, {kBlindfuse, "build", input, "--output", folder / "db", "--shards", "3",
                         "--params", "lwe-1288"})
                .status,
            0);
  const ProgramResult result =
      run(folder, {kBlindfuse, "inspect", folder / "db", "--verify", "--json"});
  ASSERT_EQ(result.status, 0) << result.err;
  const auto found = nlohmann::json::parse(result.out);
  EXPECT_EQ(found["samples_verified"], 16);
  EXPECT_EQ(found["key_count"], 100);

  // A flipped bit anywhere is found.
  for (const auto& entry : std::filesystem::directory_iterator(folder / "db" / "shards")) {
    std::string content = read_whole(entry.path());
    content[content.size() / 3] ^= 4;
    write_file(entry.path(), content);
    break;
  }
  const ProgramResult damaged = run(folder, {kBlindfuse, "inspect", folder / "db", "--verify"});
  EXPECT_EQ(damaged.status, 1);
  EXPECT_THAT(damaged.err, HasSubstr("altered"));
}

// Of a key that comes several times, the sample is the value that counts.
TEST(InspectProgram, VerifiesTheValuesThatDuplicatesLeave) {
  const TemporaryFolder folder;
  const std::string input = write_file(folder / "a.tsv", "a\t1\nb\t2\na\t3\nb\t4\na\t5\n");
  for (const char* policy : {"first", "last"}) {
    const std::string database = folder / policy;
    ASSERT_EQ(run(folder, {kBlindfuse, "build", input, "--output", database, "--on-duplicate",
                           policy, "--params", "lwe-1288"})
                  .status,
              0);
    const ProgramResult result = run(folder, {kBlindfuse, "inspect", database, "--verify"});
    EXPECT_EQ(result.status, 0) << result.err;
    EXPECT_THAT(result.out, HasSubstr("2 sample keys found"));
  }
}

TEST(InspectProgram, TakesSamplesFromTheFirstNumberToTheLast) {
  const TemporaryFolder folder;
  std::string lines;
  for (int i = 0; i < 41; ++i) lines += "value " + std::to_string(i) + "\n";
  const std::string input = write_file(folder / "a.tsv", lines);
  ASSERT_EQ(run(folder, {kBlindfuse, "build", input, "--output", folder / "db", "--index"}).status,
            0);
  const DatabaseDirectory directory(folder / "db");
  const auto samples =
      parse_samples(directory.read_samples(directory.read_manifest().manifest, 1 << 20));
  ASSERT_EQ(samples.size(), 16u);
  EXPECT_EQ(samples.front().key, "0");
  EXPECT_EQ(samples.back().key, "40");
}

// Keys from somebody who has read the salt in the manifest.
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
    Words command = {kBlindfuse,    "build",    folder / "a.tsv",           "--output",
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
