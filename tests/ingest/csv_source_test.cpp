
#include <random>

#include "host/ingest/csv_source.h"
#include "tests/ingest/ingest_testing.h"

namespace blindfuse {
namespace {

using namespace ingest_testing;

using Row = std::vector<std::string>;

struct Rows {
  std::vector<Row> rows;
  std::vector<uint64_t> line_numbers;
  std::string error;
  bool operator==(const Rows&) const = default;
};

Rows read_rows(std::string_view text, size_t buffer_bytes,
               size_t max_line_bytes = LineReader::kMaxLineBytes) {
  Rows result;
  result.error = error_of([&] {
    CsvReader reader(LineReader(std::make_unique<MemoryByteSource>(text, "words"), buffer_bytes,
                                max_line_bytes));
    while (reader.next()) {
      result.rows.emplace_back(reader.fields().begin(), reader.fields().end());
      result.line_numbers.push_back(reader.line_number());
    }
  });
  return result;
}

// With every small buffer and the usual one.
Rows read_rows(std::string_view text) {
  const Rows usual = read_rows(text, LineReader::kBufferBytes);
  for (size_t buffer_bytes = 1; buffer_bytes <= 7; ++buffer_bytes) {
    EXPECT_EQ(read_rows(text, buffer_bytes), usual) << "buffer of " << buffer_bytes;
  }
  return usual;
}

void expect_rows(std::string_view text, const std::vector<Row>& expected) {
  const Rows result = read_rows(text);
  EXPECT_EQ(result.rows, expected);
  EXPECT_EQ(result.error, "");
}

TEST(CsvReader, SplitsRowsAndFields) {
  expect_rows("a,b\nc,d\n", {{"a", "b"}, {"c", "d"}});
  expect_rows("a,b\r\nc,d\r\n", {{"a", "b"}, {"c", "d"}});
  expect_rows("a,b\r\nc,d", {{"a", "b"}, {"c", "d"}});
  expect_rows("", {});
}

TEST(CsvReader, KeepsEmptyFields) {
  expect_rows(",\n,,\n\na,\n,b", {{"", ""}, {"", "", ""}, {""}, {"a", ""}, {"", "b"}});
  expect_rows("\"\"\n\"\",\n,\"\"\n\"\",\"\"", {{""}, {"", ""}, {"", ""}, {"", ""}});
}

TEST(CsvReader, UnquotesFields) {
  expect_rows("\"a\",b\nc,\"d\"\n", {{"a", "b"}, {"c", "d"}});
  expect_rows("\"a,b\",\"say \"\"hi\"\"\",\"\"\"\",c\n", {{"a,b", "say \"hi\"", "\"", "c"}});
  expect_rows("\"\"\"\"\"\"", {{"\"\""}});
}

TEST(CsvReader, KeepsLineEndsWithinQuotes) {
  expect_rows("\"a\nb\",\"c\r\nd\"\r\n\"\n\n\"\n", {{"a\nb", "c\r\nd"}, {"\n\n"}});
  expect_rows("\"a\rb\r\"\n", {{"a\rb\r"}});
}

TEST(CsvReader, KeepsSpacesZeroBytesAndTabs) {
  expect_rows(" a ,\tb\0,\" c\0 \"\n"sv, {{" a ", "\tb\0"s, " c\0 "s}});
}

TEST(CsvReader, SkipsAByteOrderMark) {
  expect_rows(
      "\xEF\xBB\xBF"
      "a,b\n",
      {{"a", "b"}});
  expect_rows("\xEF\xBB\xBF\"a\",b\n", {{"a", "b"}});
}

TEST(CsvReader, NumbersRowsByTheLineWhereTheyBegin) {
  const Rows result = read_rows("a\n\"b\n\nb\"\nc,\"d\nd\",\"e\ne\"\nf\n");
  EXPECT_EQ(result.line_numbers, (std::vector<uint64_t>{1, 2, 5, 8}));
}

TEST(CsvReader, RefusesAQuoteInAnUnquotedField) {
  const std::string wrong =
      ": a quote in an unquoted field; expected the whole field in quotes, and quotes within it "
      "doubled";
  EXPECT_EQ(read_rows("a,b\nc\"d,e\n").error, "words, line 2" + wrong);
  EXPECT_EQ(read_rows("a,b \"c\"\n").error, "words, line 1" + wrong);
  EXPECT_EQ(read_rows("\"a\n\",b\"\n").error, "words, line 2" + wrong) << "the line of the quote";
}

TEST(CsvReader, RefusesTextAfterAClosingQuote) {
  const std::string wrong =
      ": text after a closing quote; expected a comma or the end of the line, and quotes within a "
      "quoted field doubled";
  EXPECT_EQ(read_rows("a\n\"b\"c,d\n").error, "words, line 2" + wrong);
  EXPECT_EQ(read_rows("a\n\"b\" ,d\n").error, "words, line 2" + wrong);
  EXPECT_EQ(read_rows("\"a\nb\"\r,d\n").error, "words, line 2" + wrong);
}

TEST(CsvReader, RefusesAQuoteThatIsNeverClosed) {
  const std::string wrong = ": a quote opened here is never closed; expected a closing quote";
  EXPECT_EQ(read_rows("a\nb,\"c\nd\ne\n").error, "words, line 2" + wrong);
  EXPECT_EQ(read_rows("\"").error, "words, line 1" + wrong);
  EXPECT_EQ(read_rows("\"a\"\"").error, "words, line 1" + wrong);
  EXPECT_EQ(read_rows("\"a\nb\",\"c\n").error, "words, line 2" + wrong) << "the line of the quote";
}

TEST(CsvReader, RefusesACarriageReturnThatEndsNoLine) {
  const std::string wrong =
      ": a carriage return without a line feed; expected lines that end in LF or CRLF, or the "
      "field in quotes";
  EXPECT_EQ(read_rows("a,b\rc,d\r").error, "words, line 1" + wrong) << "the ends of an old Mac";
  EXPECT_EQ(read_rows("a\n\"b\",c\rd\n").error, "words, line 2" + wrong);
}

TEST(CsvReader, LimitsRows) {
  const auto error = [](const std::string& text) {
    return read_rows(text, LineReader::kBufferBytes, 10).error;
  };
  EXPECT_EQ(error("a\n12345,6789\n"), "");
  EXPECT_EQ(error("a\n12345,67890\n"),
            "words, line 2: longer than the limit; expected at most 10 bytes");
  EXPECT_EQ(error("\"12\n34\n56\n78\n\"\n"),
            "words, line 1: a quote opened here is still open when the row reaches the limit of 10 "
            "bytes; expected a closing quote");
  EXPECT_EQ(error("\"12\n34\n56\n\"\n"), "");
}

TEST(CsvReader, LimitsFields) {
  const std::string commas(CsvReader::kMaxFields, ',');
  const std::string wrong = "words, line 2: more fields than the limit; expected at most 65536";
  EXPECT_EQ(read_rows("a\n" + commas.substr(1) + "\n", 64).error, "");
  EXPECT_EQ(read_rows("a\n" + commas + "\n", 64).error, wrong);
  EXPECT_EQ(read_rows("a\n\"\"" + commas.substr(1), 64).error, "");
  EXPECT_EQ(read_rows("a\n\"\"" + commas, 64).error, wrong);
}

// A writer of RFC 4180 of its own: quotes where it must, and sometimes where it need not.
std::string write_field(const std::string& field, bool quote_anyway) {
  if (!quote_anyway && field.find_first_of(",\"\r\n") == std::string::npos) return field;
  std::string text = "\"";
  for (const char c : field) text += c == '"' ? "\"\"" : std::string(1, c);
  return text + "\"";
}

TEST(CsvReader, ReadsBackWhatWasWritten) {
  const std::vector<std::string> pieces = {"a", "bc",  ",",    "\"",       "\n",   "\r",
                                           " ", "\0"s, "\r\n", "\xC3\xA9", "\"\"", "\t"};
  std::mt19937 random(4180);
  for (int round = 0; round < 2000; ++round) {
    std::vector<Row> rows(random() % 6);
    std::string text = random() % 8 == 0 ? "\xEF\xBB\xBF" : "";
    const std::string end = random() % 2 == 0 ? "\n" : "\r\n";
    for (size_t r = 0; r < rows.size(); ++r) {
      rows[r].resize(1 + random() % 5);
      for (size_t f = 0; f < rows[r].size(); ++f) {
        for (size_t size = random() % 5; size > 0; --size) {
          rows[r][f] += pieces[random() % pieces.size()];
        }
        // One empty field would be an empty line, which, as a last one without an end, does not
        // count as a line.
        const bool quote_anyway = random() % 4 == 0 || rows[r].size() == 1;
        text += (f == 0 ? "" : ",") + write_field(rows[r][f], quote_anyway);
      }
      if (r + 1 < rows.size() || random() % 2 == 0) text += end;
    }
    const Rows result = read_rows(text, 1 + random() % 20);
    ASSERT_EQ(result.error, "") << testing::PrintToString(text);
    ASSERT_EQ(result.rows, rows) << testing::PrintToString(text);
  }
}

Outcome read_csv(std::string_view text, const SourceOptions& options = {}) {
  return read_text<CsvSource>(text, options);
}

TEST(CsvSource, FindsTheColumnsByName) {
  EXPECT_EQ(read_csv("key,value\na,1\nb,2\n"), pairs({{"a", "1", 2}, {"b", "2", 3}}));
  EXPECT_EQ(read_csv("value,id,key\r\n1,x,a\r\n2,y,b"), pairs({{"a", "1", 2}, {"b", "2", 3}}));
  EXPECT_EQ(read_csv("\xEF\xBB\xBFkey,value\na,1\n"), pairs({{"a", "1", 2}}));
  EXPECT_EQ(read_csv("\"key\",\"value\"\na,1\n"), pairs({{"a", "1", 2}}));
  EXPECT_EQ(read_csv("key,value\n\"a\nb\",\"1\r\n2\"\nc,3\n"),
            pairs({{"a\nb", "1\r\n2", 2}, {"c", "3", 5}}));
  EXPECT_EQ(read_csv("key,value"), pairs({}));
  EXPECT_EQ(read_csv("\xEF\xBB\xBF").error,
            "words: no header; expected a first line that names the columns");
  SourceOptions options;
  options.key_column = "the, \"word\"";
  options.value_column = "gloss\nline";
  EXPECT_EQ(read_csv("\"gloss\nline\",\"the, \"\"word\"\"\"\n1,a\n", options),
            pairs({{"a", "1", 3}}));
}

TEST(CsvSource, ReadsOnlyTheValuesOfAnIndex) {
  SourceOptions options;
  options.index = true;
  EXPECT_EQ(read_csv("value\n1\n\n\"2,\n\"\n", options),
            pairs({{"", "1", 2}, {"", "", 3}, {"", "2,\n", 4}}));
  EXPECT_EQ(read_csv("a,value\nx,1\n", options), pairs({{"", "1", 2}}));
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

TEST(CsvSource, ReadsTheSameColumnTwiceWhenAsked) {
  SourceOptions options;
  options.key_column = options.value_column = "word";
  options.value_encoding = TextEncoding::kHex;
  EXPECT_EQ(read_csv("word\n3132\n", options), pairs({{"3132", "12", 2}}));
}

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
