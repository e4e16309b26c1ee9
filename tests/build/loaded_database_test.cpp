#include "host/database/loaded_database.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "src/errors.h"
#include "tests/build/builder_testing.h"

namespace blindfuse::testing {
namespace {

using ::testing::HasSubstr;

std::string error_of_loading(const std::filesystem::path& root) {
  try {
    load(root);
  } catch (const BadInput& error) {
    return error.what();
  }
  return "nothing was thrown";
}

// Every file that an epoch consists of, damaged in every way, is found out and named.
TEST(LoadedDatabase, NamesAFileThatIsTruncatedAlteredOrMissing) {
  const TemporaryFolder folder;
  BuildOptions options;
  options.shard_count = 2;
  build({{"a", "1"}, {"b", "22"}, {"c", "333"}}, folder / "db", options);
  const auto whole = snapshot(folder / "db");
  int damaged = 0;
  for (const auto& [name, hash] : whole) {
    if (name.ends_with(".lock") || name.starts_with("samples")) continue;  // not served
    const std::filesystem::path path = folder / "db" / name;
    const std::string content = read_whole(path);
    for (const std::string& damage :
         {content.substr(0, content.size() - 3), content + "x", std::string(), [&] {
            std::string flipped = content;
            flipped[flipped.size() / 2] ^= 1;
            return flipped;
          }()}) {
      std::ofstream(path, std::ios::binary) << damage;
      const std::string error = error_of_loading(folder / "db");
      if (name == "manifest.json" && damage == content + "x") {
        EXPECT_THAT(error, HasSubstr("not JSON"));
      } else {
        EXPECT_NE(error, "nothing was thrown") << name << " as " << damage.size() << " bytes";
        EXPECT_THAT(error, HasSubstr(name == "manifest.json" ? "manifest" : name));
      }
      ++damaged;
    }
    std::filesystem::remove(path);
    EXPECT_NE(error_of_loading(folder / "db"), "nothing was thrown") << name;
    std::ofstream(path, std::ios::binary) << content;
    EXPECT_EQ(error_of_loading(folder / "db"), "nothing was thrown") << name;
  }
  EXPECT_EQ(damaged, 6 * 4);  // manifest, table, two matrices, two hints
}

TEST(LoadedDatabase, RefusesAListOfEarlierEpochsThatHoldsSomethingElse) {
  const TemporaryFolder folder;
  build({{"a", "1"}}, folder / "db", {});
  const auto load_with = [&](const std::string& content) {
    std::ofstream(folder / "db/retired.txt") << content;
    return error_of_loading(folder / "db");
  };
  const std::string id(64, 'a');
  EXPECT_EQ(load_with(id + "\n" + id + "\n"), "nothing was thrown");
  std::string upper = id;
  upper[0] = 'A';
  for (const std::string& line :
       {std::string("hello"), id + "a", id.substr(1), upper, std::string()}) {
    const std::string content = line + "\n" + id + "\n";
    EXPECT_THAT(load_with(content), HasSubstr("retired.txt is altered")) << content;
  }
}

TEST(LoadedDatabase, SaysWhatIsNoDatabase) {
  const TemporaryFolder folder;
  EXPECT_THAT(error_of_loading(folder / "missing"), HasSubstr("does not exist"));
  EXPECT_THAT(error_of_loading(folder.path()), HasSubstr("not a database"));
  std::ofstream(folder / "file") << "x";
  EXPECT_THAT(error_of_loading(folder / "file"), HasSubstr("not a directory"));
}

}  // namespace
}  // namespace blindfuse::testing
