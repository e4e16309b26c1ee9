#include "host/ingest/csv_source.h"

#include "tests/ingest/ingest_testing.h"

namespace blindfuse {
namespace {

using namespace ingest_testing;

Outcome read_tsv(std::string_view text, const SourceOptions& options = {}) {
  return read_text<TsvSource>(text, options);
}

TEST(TsvSource, ReadsPairs) {
  const Outcome expected = pairs({{"cat", "Katze", 1}, {"dog", "Hund", 2}});
  EXPECT_EQ(read_tsv("cat\tKatze\ndog\tHund\n"), expected);
  EXPECT_EQ(read_tsv("cat\tKatze\r\ndog\tHund\r\n"), expected);
  EXPECT_EQ(read_tsv("cat\tKatze\ndog\tHund"), expected);
  EXPECT_EQ(read_tsv("\xEF\xBB\xBF"
                     "cat\tKatze\ndog\tHund\n"),
            expected);
}

TEST(TsvSource, TakesTextLiterally) {
  EXPECT_EQ(read_tsv("a\\tb\t\"c\\n\"\n \t \n\t\n"),
            pairs({{"a\\tb", "\"c\\n\"", 1}, {" ", " ", 2}, {"", "", 3}}));
  EXPECT_EQ(read_tsv("a\0b\tc\0d\n"sv), pairs({{"a\0b"s, "c\0d"s, 1}}));
}

// The same rule as in CSV.
TEST(TsvSource, RefusesACarriageReturnWithinALine) {
  const std::string wrong =
      "words, line 2: a carriage return without a line feed; expected lines that end in LF or CRLF";
  EXPECT_EQ(read_tsv("a\tb\nc\td\r\r\n").error, wrong);
  EXPECT_EQ(read_tsv("a\tb\nc\re\td\n").error, wrong);
  EXPECT_EQ(read_tsv("a\tb\nc\td\r").error, wrong);
  EXPECT_EQ(read_tsv("a\nb\rc\n", index_options()).error, wrong);
}

TEST(TsvSource, SkipsEmptyLines) {
  EXPECT_EQ(read_tsv("\na\tb\n\n\r\nc\td\n\n"), pairs({{"a", "b", 2}, {"c", "d", 5}}));
  EXPECT_EQ(read_tsv("\n"), pairs({}));
}

TEST(TsvSource, RefusesLinesWithoutATab) {
  EXPECT_EQ(read_tsv("a\tb\nc\n").error, "words, line 2: no tab; expected KEY<tab>VALUE");
  EXPECT_EQ(read_tsv("\n \n").error, "words, line 2: no tab; expected KEY<tab>VALUE");
}

TEST(TsvSource, RefusesASecondTab) {
  const Outcome outcome = read_tsv("a\tb\nc\td\te\n");
  EXPECT_EQ(outcome.pairs, (std::vector<Pair>{{"a", "b", 1}}));
  EXPECT_EQ(outcome.error,
            "words, line 2: a second tab; expected KEY<tab>VALUE with exactly one tab");
  EXPECT_NE(read_tsv("a\tb\t\n").error, "");
}

TEST(TsvSource, TakesWholeLinesAsTheValuesOfAnIndex) {
  EXPECT_EQ(read_tsv("one\n\ntwo\tthree\tfour\r\n\r\nlast", index_options()),
            pairs({{"", "one", 1},
                   {"", "", 2},
                   {"", "two\tthree\tfour", 3},
                   {"", "", 4},
                   {"", "last", 5}}));
}

}  // namespace
}  // namespace blindfuse
