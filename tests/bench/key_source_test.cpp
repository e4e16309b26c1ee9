#include "bench/load/query_pool.h"

#include <gtest/gtest.h>

#include <fstream>
#include <map>

#include "src/base/errors.h"
#include "tests/client/client_testing.h"

namespace blindfuse::load {
namespace {

class KeySourceTest : public testing::Test {
 protected:
  std::filesystem::path file(const std::string& name, const std::string& text) {
    std::ofstream(folder_.path() / name) << text;
    return folder_.path() / name;
  }

  // What this many draws give, by key.
  std::map<std::string, KnownKey> drawn(int count) {
    KeySource keys(options_);
    std::map<std::string, KnownKey> all;
    for (int i = 0; i < count; ++i) {
      const KnownKey known = keys.draw(layout_);
      all[known.key] = known;
    }
    return all;
  }

  ScratchFolder folder_;
  Options options_;
  Layout layout_;
};

TEST_F(KeySourceTest, WithoutFilesKeysAreNotThere) {
  const auto keys = drawn(100);
  EXPECT_EQ(keys.size(), 100u);
  for (const auto& [key, known] : keys) EXPECT_FALSE(known.is_there);
}

TEST_F(KeySourceTest, WithoutFilesNumbersAreThere) {
  layout_.kind = DatabaseKind::kIndex;
  layout_.key_count = 3;
  const auto keys = drawn(100);
  EXPECT_EQ(keys.size(), 3u);
  EXPECT_TRUE(keys.contains("2"));
  EXPECT_TRUE(keys.at("0").is_there);
  EXPECT_EQ(keys.at("0").value, std::nullopt);
}

TEST_F(KeySourceTest, TruthGivesKeysAndValues) {
  options_.expect_file = file("truth.tsv", "a\t\x01\xff\r\n\nb\t\n");
  const auto keys = drawn(2);
  ASSERT_EQ(keys.size(), 2u);
  EXPECT_EQ(keys.at("a").value, "\x01\xff");
  EXPECT_EQ(keys.at("b").value, "");
  EXPECT_TRUE(keys.at("b").is_there);
}

TEST_F(KeySourceTest, BadFilesAreRefusedByTheirLine) {
  const auto refusal = [&] {
    try {
      KeySource keys(options_);
    } catch (const InputError& error) {
      return std::string(error.what());
    }
    return std::string("accepted");
  };
  options_.expect_file = file("truth.tsv", "a\tx\nb\n");
  EXPECT_NE(refusal().find("truth.tsv:2: no tab; expected KEY"), std::string::npos) << refusal();
  options_.expect_file = file("truth.tsv", "\n");
  EXPECT_NE(refusal().find("has no keys"), std::string::npos) << refusal();
  options_.expect_file = folder_.path() / "missing";
  EXPECT_NE(refusal(), "accepted");
}

TEST(KnownKey, IsMetByWhatItSays) {
  const std::optional<std::string> nothing, x = "x", y = "y";
  const auto met_by = [&](const KnownKey& known) {
    return std::vector<bool>{known.is_met_by(nothing), known.is_met_by(x), known.is_met_by(y)};
  };
  EXPECT_EQ(met_by({"key", true, "x"}), (std::vector<bool>{false, true, false}));
  EXPECT_EQ(met_by({"key", true, std::nullopt}), (std::vector<bool>{false, true, true}));
  EXPECT_EQ(met_by({"key", false, std::nullopt}), (std::vector<bool>{true, false, false}));
}

}  // namespace
}  // namespace blindfuse::load
