#include "bench/load/key_source.h"

#include <gtest/gtest.h>

#include <fstream>
#include <set>

#include "src/base/errors.h"
#include "tests/client/scratch_folder.h"

namespace blindfuse::load {
namespace {

using Kind = Expectation::Kind;

class KeySourceTest : public testing::Test {
 protected:
  std::filesystem::path file(const std::string& name, const std::string& text) {
    std::ofstream(folder_.path() / name) << text;
    return folder_.path() / name;
  }

  // What so many draws give, by key.
  std::map<std::string, Expectation> drawn(int count) {
    KeySource keys(options_);
    std::mt19937_64 random(1);
    std::map<std::string, Expectation> all;
    for (int i = 0; i < count; ++i) {
      KnownKey known = keys.draw(layout_, random);
      all[known.key] = known.expectation;
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
  for (const auto& [key, expectation] : keys) EXPECT_EQ(expectation.kind, Kind::kNotThere);
}

TEST_F(KeySourceTest, WithoutFilesNumbersAreThere) {
  layout_.kind = DatabaseKind::kIndex;
  layout_.key_count = 3;
  const auto keys = drawn(100);
  EXPECT_EQ(keys.size(), 3u);
  EXPECT_TRUE(keys.contains("2"));
  EXPECT_EQ(keys.at("0").kind, Kind::kThere);
}

TEST_F(KeySourceTest, TruthGivesKeysAndValues) {
  options_.expect_file = file("truth.tsv", "a\t01ff\r\n\nb\t\n");
  options_.value_encoding = "hex";
  const auto keys = drawn(2);
  ASSERT_EQ(keys.size(), 2u);
  EXPECT_EQ(keys.at("a").value, "\x01\xff");
  EXPECT_EQ(keys.at("b").value, "");
  EXPECT_EQ(keys.at("b").kind, Kind::kValue);
}

TEST_F(KeySourceTest, KeysWithoutATruthAreThereUnlessEpochsChange) {
  options_.keys_file = file("keys", "a\nb");
  options_.expect_file = file("truth.tsv", "b\tx\nc\ty\n");
  auto keys = drawn(10);
  EXPECT_EQ(keys.size(), 2u);
  EXPECT_EQ(keys.at("a").kind, Kind::kThere);
  EXPECT_EQ(keys.at("b").value, "x");
  options_.epoch_changes = true;
  EXPECT_EQ(drawn(10).at("a").kind, Kind::kAnything);
}

TEST_F(KeySourceTest, BadFilesAreRefusedByTheirLine) {
  const auto refusal = [&] {
    try {
      KeySource keys(options_);
    } catch (const BadInput& error) {
      return std::string(error.what());
    }
    return std::string("accepted");
  };
  options_.expect_file = file("truth.tsv", "a\tx\nb\n");
  EXPECT_NE(refusal().find("truth.tsv:2: there is no tab"), std::string::npos) << refusal();
  options_.expect_file = file("truth.tsv", "a\tx\n");
  options_.value_encoding = "hex";
  EXPECT_NE(refusal().find("truth.tsv:1: "), std::string::npos) << refusal();
  options_.expect_file = file("truth.tsv", "\n");
  EXPECT_NE(refusal().find("has no keys"), std::string::npos) << refusal();
  options_.expect_file = folder_.path() / "missing";
  EXPECT_NE(refusal(), "accepted");
}

TEST(Expectation, IsMetByWhatItSays) {
  const std::optional<std::string> nothing, x = "x", y = "y";
  const auto met_by = [&](const Expectation& expectation) {
    return std::vector<bool>{expectation.is_met_by(nothing), expectation.is_met_by(x),
                             expectation.is_met_by(y)};
  };
  EXPECT_EQ(met_by({Kind::kValue, "x"}), (std::vector<bool>{false, true, false}));
  EXPECT_EQ(met_by({Kind::kThere, ""}), (std::vector<bool>{false, true, true}));
  EXPECT_EQ(met_by({Kind::kNotThere, ""}), (std::vector<bool>{true, false, false}));
  EXPECT_EQ(met_by({Kind::kAnything, ""}), (std::vector<bool>{true, true, true}));
}

}  // namespace
}  // namespace blindfuse::load
