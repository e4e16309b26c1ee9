#include "host/ingest/csv_source.h"

#include "tests/ingest/ingest_testing.h"

namespace blindfuse {
namespace {

using namespace ingest_testing;

Outcome read_csv(std::string_view text, const SourceOptions& options = {}) {
  return read_text<CsvSource>(text, options);
}

TEST(CsvSource, FindsTheColumnsByName) {
  EXPECT_EQ(read_csv("key,value\na,1\nb,2\n"), pairs({{"a", "1", 2}, {"b", "2", 3}}));
  EXPECT_EQ(read_csv("value,id,key\r\n1,x,a\r\n2,y,b"), pairs({{"a", "1", 2}, {"b", "2", 3}}));
  EXPECT_EQ(read_csv("\xEF\xBB\xBFkey,value\na,1\n"), pairs({{"a", "1", 2}}));
  EXPECT_EQ(read_csv("\"key\",\"value\"\na,1\n"), pairs({{"a", "1", 2}}));
  SourceOptions options;
  options.key_column = "the, \"word\"";
  options.value_column = "gloss\nline";
  EXPECT_EQ(read_csv("\"gloss\nline\",\"the, \"\"word\"\"\"\n1,a\n", options),
            pairs({{"a", "1", 3}}));
}

TEST(CsvSource, ReadsTheSameColumnTwiceWhenAsked) {
  SourceOptions options;
  options.key_column = options.value_column = "word";
  options.value_encoding = TextEncoding::kHex;
  EXPECT_EQ(read_csv("word\n3132\n", options), pairs({{"3132", "12", 2}}));
}

TEST(CsvSource, ReadsOnlyTheValuesOfAnIndex) {
  SourceOptions options;
  options.index = true;
  EXPECT_EQ(read_csv("value\n1\n\n\"2,\n\"\n", options),
            pairs({{"", "1", 2}, {"", "", 3}, {"", "2,\n", 4}}));
  EXPECT_EQ(read_csv("a,value\nx,1\n", options), pairs({{"", "1", 2}}));
}

TEST(CsvSource, PlacesARowAtTheLineWhereItBegins) {
  EXPECT_EQ(read_csv("key,value\n\"a\nb\",\"1\r\n2\"\nc,3\n"),
            pairs({{"a\nb", "1\r\n2", 2}, {"c", "3", 5}}));
}

TEST(CsvSource, ReadsNoPairsBehindAHeaderAlone) {
  EXPECT_EQ(read_csv("key,value\n"), pairs({}));
  EXPECT_EQ(read_csv("key,value"), pairs({}));
}

TEST(CsvSource, RefusesATextWithoutHeader) {
  EXPECT_EQ(read_csv("").error, "words: no header; expected a first line that names the columns");
  EXPECT_EQ(read_csv("\xEF\xBB\xBF").error,
            "words: no header; expected a first line that names the columns");
}

TEST(CsvSource, ListsTheColumnsWhenOneIsMissing) {
  EXPECT_EQ(read_csv("id,value\na,1\n").error,
            "words, line 1: no column \"key\"; the columns are \"id\", \"value\"; choose one with "
            "--key-column");
  EXPECT_EQ(
      read_csv("key,Value\na,1\n").error,
      "words, line 1: no column \"value\"; the columns are \"key\", \"Value\"; choose one with "
      "--value-column");
  EXPECT_EQ(read_csv("\na,1\n").error,
            "words, line 1: no column \"key\"; the columns are \"\"; choose one with --key-column");
  std::string header = "c0";
  for (int i = 1; i < 40; ++i) header += ",c" + std::to_string(i);
  EXPECT_EQ(read_csv(header).error,
            "words, line 1: no column \"key\"; the columns are \"c0\", \"c1\", \"c2\", \"c3\", "
            "\"c4\", \"c5\", \"c6\", \"c7\", \"c8\", \"c9\", ...; choose one with --key-column");
  EXPECT_EQ(read_csv(std::string(1000, 'x')).error,
            "words, line 1: no column \"key\"; the columns are \"" + std::string(30, 'x') +
                "...\"; choose one with --key-column");
}

TEST(CsvSource, RefusesAColumnNamedTwiceOnlyWhenItIsWanted) {
  EXPECT_EQ(read_csv("key,value,key\na,1,b\n").error,
            "words, line 1: more than one column \"key\"; expected exactly one");
  EXPECT_EQ(read_csv("value,value,key\n1,2,a\n").error,
            "words, line 1: more than one column \"value\"; expected exactly one");
  EXPECT_EQ(read_csv("key,value,x,x\na,1,b,c\n"), pairs({{"a", "1", 2}}));
}

TEST(CsvSource, RefusesRowsWithAnotherNumberOfFields) {
  const Outcome outcome = read_csv("key,value\na,1\nb\nc,2\n");
  EXPECT_EQ(outcome.pairs, (std::vector<Pair>{{"a", "1", 2}}));
  EXPECT_EQ(outcome.error, "words, line 3: 1 field; expected 2 fields as in the header");
  EXPECT_EQ(read_csv("key,value\na,1,\n").error,
            "words, line 2: 3 fields; expected 2 fields as in the header");
  EXPECT_EQ(read_csv("key,value\n\"a\n\",1\n\"b\nb\",2,3\n").error,
            "words, line 4: 3 fields; expected 2 fields as in the header");
  EXPECT_EQ(read_csv("key,value\n\"\"\n").error,
            "words, line 2: 1 field; expected 2 fields as in the header");
  SourceOptions options;
  options.index = true;
  EXPECT_EQ(read_csv("value\n1\n2,3\n", options).error,
            "words, line 3: 2 fields; expected 1 field as in the header");
}

TEST(CsvSource, SkipsEmptyLines) {
  EXPECT_EQ(read_csv("key,value\n\na,1\n\r\n\nb,2\n\n"), pairs({{"a", "1", 3}, {"b", "2", 6}}));
  SourceOptions options;
  options.index = true;  // with one column, an empty field
  EXPECT_EQ(read_csv("value\n1\n\n2\n", options), pairs({{"", "1", 2}, {"", "", 3}, {"", "2", 4}}));
}

TEST(CsvSource, PassesOnTheErrorsOfTheReader) {
  EXPECT_EQ(read_csv("key,value\na,b\"c\n").error.substr(0, 45),
            "words, line 2: a quote in an unquoted field; ");
  EXPECT_EQ(read_csv("key,\"value\n").error,
            "words, line 1: a quote opened here is never closed; expected a closing quote");
}

TEST(CsvSource, DecodesKeysAndValues) {
  SourceOptions options;
  options.key_encoding = TextEncoding::kBase64;
  options.value_encoding = TextEncoding::kHex;
  EXPECT_EQ(read_csv("key,value\nYQ==,0001\n", options), pairs({{"a", "\0\x01"s, 2}}));
  EXPECT_EQ(read_csv("key,value\n\"YQ\n==\",00\n", options).error,
            "words, line 2: key is not base64 at byte 3 (\"\\x0a\"); "
            "expected characters A-Z, a-z, 0-9, + and /, with = only at the end");
  EXPECT_EQ(read_csv("key,value,other\n\"\xFF\",1,\n").error,
            "words, line 2: key is not UTF-8 at byte 1 (\"\\xff\"); "
            "expected UTF-8, or bytes written as hex or base64");
  EXPECT_EQ(read_csv("key,value,other\na,1,\xFF\n"), pairs({{"a", "1", 2}}));
}

TEST(CsvSource, LimitsKeysAndValues) {
  const auto error = [](const std::string& text) {
    return read_all([&] {
             return std::make_unique<CsvSource>(
                 LineReader(std::make_unique<MemoryByteSource>(text, "words")), SourceOptions());
           })
        .error;
  };
  EXPECT_EQ(error("key,value\n" + std::string(65'537, 'k') + ",v\n"),
            "words, line 2: key of 65537 bytes; expected at most 65536");
  std::string many_lines = "key,value\na,1\nb,\"";
  for (int i = 0; i < 1 << 10; ++i) many_lines += std::string((16 << 10) - 1, 'v') + "\n";
  EXPECT_EQ(error(many_lines + "\"\n"), "");
  EXPECT_EQ(error(many_lines + "v\"\n"),
            "words, line 3: value of 16777217 bytes; expected at most 16777216");
}

TEST(CsvSource, TellsItsProgress) {
  const std::string text = "key,value\na,1\n";
  CsvSource source(LineReader(std::make_unique<MemoryByteSource>(text, "words")), {});
  EXPECT_EQ(source.name(), "words");
  EXPECT_EQ(source.place_unit(), "line");
  EXPECT_EQ(source.bytes_total(), text.size());
  KeyValuePair pair;
  while (source.next(pair)) {
  }
  EXPECT_EQ(source.bytes_read(), text.size());
}

}  // namespace
}  // namespace blindfuse
