#include "host/ingest/tsv_source.h"

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

TEST(TsvSource, ReadsNoPairsFromAnEmptyText) {
  EXPECT_EQ(read_tsv(""), pairs({}));
  EXPECT_EQ(read_tsv("", index_options()), pairs({}));
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

TEST(TsvSource, DecodesKeysAndValues) {
  SourceOptions options;
  options.key_encoding = TextEncoding::kHex;
  options.value_encoding = TextEncoding::kBase64;
  EXPECT_EQ(read_tsv("00ff\tAAE=\n0a\t\n", options),
            pairs({{"\x00\xFF"s, "\x00\x01"s, 1}, {"\n", "", 2}}));
  EXPECT_EQ(read_tsv("00\tAA==\n0x\tAA==\n", options).error,
            "words, line 2: key is not hex at byte 2 (\"x\"); expected digits 0-9, a-f or A-F");
  EXPECT_EQ(read_tsv("00\tAA\n", options).error,
            "words, line 1: value has 2 base64 characters; "
            "expected a multiple of 4, padded with =");
}

TEST(TsvSource, RefusesWhatIsNotUtf8) {
  EXPECT_EQ(read_tsv("a\tb\nc\td\xFF\n").error,
            "words, line 2: value is not UTF-8 at byte 2 (\"\\xff\"); "
            "expected UTF-8, or bytes written as hex or base64");
  EXPECT_EQ(read_tsv("\xC0\x80\tb\n").error,
            "words, line 1: key is not UTF-8 at byte 1 (\"\\xc0\"); "
            "expected UTF-8, or bytes written as hex or base64");
  EXPECT_NE(read_tsv("\xFF", index_options()).error, "");
}

TEST(TsvSource, LimitsKeysValuesAndLines) {
  const auto error = [](const std::string& text, size_t max_line_bytes) {
    return read_all([&] {
             LineReader lines(std::make_unique<MemoryByteSource>(text, "words"),
                              LineReader::kBufferBytes, max_line_bytes);
             return std::make_unique<TsvSource>(std::move(lines), SourceOptions());
           })
        .error;
  };
  const size_t usual = LineReader::kMaxLineBytes;
  EXPECT_EQ(error("a\tb\n" + std::string(65'537, 'k') + "\tv\n", usual),
            "words, line 2: key of 65537 bytes; expected at most 65536");
  EXPECT_EQ(error("a\tb\nk\t" + std::string((16 << 20) + 1, 'v'), usual),
            "words, line 2: value of 16777217 bytes; expected at most 16777216");
  EXPECT_EQ(error("a\tb\nabcdef\tb", 7),
            "words, line 2: longer than the limit; expected at most 7 bytes");
}

TEST(TsvSource, TellsItsProgress) {
  const std::string text = "a\tb\nc\td\n";
  TsvSource source(LineReader(std::make_unique<MemoryByteSource>(text, "words")), {});
  EXPECT_EQ(source.name(), "words");
  EXPECT_EQ(source.place_unit(), "line");
  EXPECT_EQ(source.bytes_total(), 8u);
  KeyValuePair pair;
  while (source.next(pair)) {
  }
  EXPECT_EQ(source.bytes_read(), 8u);
}

}  // namespace
}  // namespace blindfuse
