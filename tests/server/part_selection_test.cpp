#include "host/server/routes/downloads.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "src/base/errors.h"

namespace blindfuse {

void PrintTo(const HintParts& range, std::ostream* out) {
  *out << range.first << "-" << range.last;
}

namespace {

TEST(PartSelection, KeepsTheOrderOfItsParts) {
  EXPECT_EQ(parse_part_selection("0", 1, "shard"), (PartSelection{{0, 0}}));
  EXPECT_EQ(parse_part_selection("0-3,17", 18, "shard"), (PartSelection{{0, 3}, {17, 17}}));
  EXPECT_EQ(parse_part_selection("17,0-3,5-5", 18, "shard"),
            (PartSelection{{17, 17}, {0, 3}, {5, 5}}));
  EXPECT_EQ(parse_part_selection("0-65535", 65'536, "shard"), (PartSelection{{0, 65'535}}));
}

TEST(PartSelection, EqualSelectionsHaveEqualTexts) {
  EXPECT_EQ(format_part_selection(parse_part_selection("7,00-3", 8, "shard")), "7-7,0-3");
  EXPECT_EQ(format_part_selection(parse_part_selection("7-7,0-3", 8, "shard")), "7-7,0-3");
}

TEST(PartSelection, RefusesWhatIsNoList) {
  for (const char* text :
       {"", ",", "1,", ",1", "1,,2", "-", "1-", "-1", "1-2-3", "a", "1 ", " 1", "+1", "0x1", "1.0",
        "4294967296", "99999999999999999999", "0..3", "0-4294967296"}) {
    try {
      parse_part_selection(text, 8, "shard");
      ADD_FAILURE() << "accepted: " << text;
    } catch (const InputError& error) {
      EXPECT_THAT(error.what(), testing::HasSubstr("is not a shard or a range of shards")) << text;
    }
  }
  EXPECT_THROW(parse_part_selection(std::string_view("0\0", 2), 8, "shard"), InputError);
}

TEST(PartSelection, NamesThePartThatIsWrong) {
  const auto error_of = [](const char* text) -> std::string {
    try {
      parse_part_selection(text, 8, "shard");
    } catch (const InputError& error) {
      return error.what();
    }
    return "accepted";
  };
  EXPECT_EQ(error_of("0-3,8"), "part 2 of shards goes beyond the last shard, 7");
  EXPECT_EQ(error_of("4294967295"), "part 1 of shards goes beyond the last shard, 7");
  EXPECT_EQ(error_of("0-4294967295"), "part 1 of shards goes beyond the last shard, 7");
  EXPECT_EQ(error_of("1,2,5-4"), "part 3 of shards ends before it begins");
  EXPECT_EQ(error_of("0-3,3"), "shard 3 is named twice");
  EXPECT_EQ(error_of("6,0,6"), "shard 6 is named twice");
  EXPECT_EQ(error_of("2-5,0-7"), "shard 2 is named twice");
}

TEST(PartSelection, SpeaksOfPacksWhereTheseAreMeant) {
  const auto error_of = [](const char* text) -> std::string {
    try {
      parse_part_selection(text, 8, "pack");
    } catch (const InputError& error) {
      return error.what();
    }
    return "accepted";
  };
  EXPECT_EQ(error_of("x"), "part 1 of packs is not a pack or a range of packs, as in 0-3,17");
  EXPECT_EQ(error_of("8"), "part 1 of packs goes beyond the last pack, 7");
  EXPECT_EQ(error_of("1,1"), "pack 1 is named twice");
}

}  // namespace
}  // namespace blindfuse
