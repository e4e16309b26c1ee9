#include "host/ingest/ndjson_source.h"

#include "tests/ingest/ingest_testing.h"

namespace blindfuse {
namespace {

using namespace ingest_testing;

Outcome read_ndjson(std::string_view text, const SourceOptions& options = {}) {
  return read_text<NdjsonSource>(text, options);
}

std::string error(std::string_view text) { return read_ndjson(text).error; }

TEST(NdjsonSource, ReadsTheMembersOfEveryObject) {
  const Outcome expected = pairs({{"a", "1", 1}, {"b", "2", 2}});
  EXPECT_EQ(read_ndjson("{\"key\":\"a\",\"value\":\"1\"}\n{\"value\":\"2\",\"key\":\"b\"}\n"),
            expected);
  EXPECT_EQ(read_ndjson("{\"key\":\"a\",\"value\":\"1\"}\r\n { \"key\" : \"b\" , "
                        "\"value\" : \"2\" } \r\n"),
            expected);
  EXPECT_EQ(read_ndjson("\xEF\xBB\xBF{\"key\":\"a\",\"value\":\"1\"}\n"
                        "{\"key\":\"b\",\"value\":\"2\"}"),
            expected);
}

TEST(NdjsonSource, FindsMembersByName) {
  SourceOptions options;
  options.key_column = "\xC3\xA9t\"";
  options.value_column = "";
  EXPECT_EQ(read_ndjson("{\"\\u00e9t\\\"\":\"a\",\"\":\"1\"}", options), pairs({{"a", "1", 1}}));
  options.key_column = options.value_column = "word";
  EXPECT_EQ(read_ndjson("{\"word\":\"a\"}", options), pairs({{"a", "a", 1}}));
}

TEST(NdjsonSource, ReadsOverOtherMembers) {
  EXPECT_EQ(read_ndjson("{\"n\":1,\"m\":-1.5e3,\"t\":true,\"z\":null,\"key\":\"a\",\"l\":[\"x\","
                        "{\"key\":\"no\",\"value\":1}],\"value\":\"1\",\"o\":{\"key\":7,\"value\":"
                        "[\"key\"]},\"n\":\"twice\",\"key2\":\"x\"}"),
            pairs({{"a", "1", 1}}));
  EXPECT_EQ(read_ndjson("{\"n\":1e400,\"key\":\"a\",\"m\":[-1E-4000,9" + std::string(400, '9') +
                        "],\"value\":\"1\"}"),
            pairs({{"a", "1", 1}}));
}

TEST(NdjsonSource, ReadsOnlyTheValuesOfAnIndex) {
  EXPECT_EQ(
      read_ndjson("{\"value\":\"1\"}\n{\"key\":7,\"value\":\"2\",\"key\":8}\n", index_options()),
      pairs({{"", "1", 1}, {"", "2", 2}}));
}

TEST(NdjsonSource, SkipsBlankLines) {
  EXPECT_EQ(read_ndjson("\n \t \r\n{\"key\":\"a\",\"value\":\"1\"}\n\n"), pairs({{"a", "1", 3}}));
  EXPECT_EQ(read_ndjson(""), pairs({}));
  EXPECT_EQ(read_ndjson("\n\n"), pairs({}));
}

TEST(NdjsonSource, DecodesEscapes) {
  EXPECT_EQ(read_ndjson("{\"key\":\"\\u0000\\n\\\"\\\\\\/\",\"value\":\"\\ud83d\\ude00\\u20ac\"}"),
            pairs({{"\0\n\"\\/"s, "\xF0\x9F\x98\x80\xE2\x82\xAC", 1}}));
}

TEST(NdjsonSource, RefusesLoneSurrogates) {
  for (const std::string text :
       {"\\ud83d", "\\ud83dx", "\\ud83d\\u0041", "\\ude00", "\\ud83d\\n"}) {
    const std::string message = error("\n{\"key\":\"a\",\"value\":\"" + text + "\"}");
    EXPECT_EQ(message.substr(0, 30), "words, line 2: bad JSON at byt") << text;
    EXPECT_NE(message.find("surrogate U+D"), std::string::npos) << message;
  }
}

TEST(NdjsonSource, RefusesWhatIsNotUtf8) {
  for (const std::string text : {"\xFF", "\xC0\x80", "\xED\xA0\x80", "\xF4\x90\x80\x80", "\xC3"}) {
    const std::string message = error("{\"key\":\"" + text + "\",\"value\":\"1\"}");
    EXPECT_EQ(message.substr(0, 25), "words, line 1: bad JSON a");
    EXPECT_NE(message.find("ill-formed UTF-8 byte"), std::string::npos) << message;
    EXPECT_NE(error("{\"key\":\"a\",\"value\":\"1\",\"x" + text + "\":1}"), "");
  }
}

TEST(NdjsonSource, RefusesWhatIsNotJson) {
  EXPECT_EQ(
      error("{\"key\":\"a\",\"value\":\"1\"}\n{\"key\":\"a\",\"value\":\"1\"\n"),
      "words, line 2: bad JSON at byte 23 (syntax error while parsing object - unexpected end "
      "of input; expected '}'); expected one JSON object a line");
  EXPECT_EQ(error("{\"key\":\"a\" \"value\":\"1\"}"),
            "words, line 1: bad JSON at byte 18 (syntax error while parsing object - unexpected "
            "string literal; expected '}'); expected one JSON object a line");
  EXPECT_EQ(error("{key:1}"),
            "words, line 1: bad JSON at byte 2 (syntax error while parsing object key - invalid "
            "literal); expected one JSON object a line");
  for (const std::string text :
       {"{\"key\":\"a\",\"value\":\"1\"}{}", "{\"key\":\"a\",\"value\":\"1\"} x",
        "{\"key\":\"a\",\"value\":\"1\",}", "{\"key\":\"a\",\"value\":'1'}", "x", "{", "}",
        "{\"key\":\"a\",\"value\":\"1\"} // no", "{\"key\":\"a\",\"value\":\"1\",\"n\":01}",
        "{\"key\":\"a\tb\",\"value\":\"1\"}", "{\"key\":\"a\",\"value\":\"1\",\"n\":NaN}"}) {
    EXPECT_NE(error(text), "") << text;
  }
}

// The parser takes a zero byte for the end of its input.
TEST(NdjsonSource, RefusesAZeroByte) {
  EXPECT_EQ(error("{\"key\":\"a\",\"value\":\"1\"}\0{"sv),
            "words, line 1: a zero byte at byte 24; expected one JSON object a line");
  EXPECT_EQ(error("\0"sv), "words, line 1: a zero byte at byte 1; expected one JSON object a line");
}

TEST(NdjsonSource, RefusesWhatIsNotAnObject) {
  const std::string right = "; expected one JSON object a line";
  EXPECT_EQ(error("[\"a\",\"1\"]"), "words, line 1: an array" + right);
  EXPECT_EQ(error("\"a\""), "words, line 1: a string" + right);
  EXPECT_EQ(error("17"), "words, line 1: a number" + right);
  EXPECT_EQ(error("null"), "words, line 1: null" + right);
}

TEST(NdjsonSource, NamesWhatIsThereInsteadOfAString) {
  const auto found = [](const std::string& json) {
    const std::string message = error("{\"key\":\"a\",\"value\":" + json + "}");
    const std::string before = "words, line 1: member \"value\" is ";
    const std::string after = "; expected a string";
    if (!message.starts_with(before) || !message.ends_with(after)) return message;
    return message.substr(before.size(), message.size() - before.size() - after.size());
  };
  EXPECT_EQ(found("1"), "a number");
  EXPECT_EQ(found("-1"), "a number");
  EXPECT_EQ(found("1.5"), "a number");
  EXPECT_EQ(found("true"), "true");
  EXPECT_EQ(found("false"), "false");
  EXPECT_EQ(found("null"), "null");
  EXPECT_EQ(found("[\"1\"]"), "an array");
  EXPECT_EQ(found("{\"value\":\"1\"}"), "an object");
  EXPECT_EQ(error("{\"key\":7,\"value\":\"1\"}"),
            "words, line 1: member \"key\" is a number; expected a string");
}

TEST(NdjsonSource, RefusesMissingMembers) {
  EXPECT_EQ(error("{\"value\":\"1\"}"),
            "words, line 1: no member \"key\"; expected it in every object; choose one with "
            "--key-column");
  EXPECT_EQ(error("{\"key\":\"a\"}"),
            "words, line 1: no member \"value\"; expected it in every object; choose one with "
            "--value-column");
  EXPECT_EQ(error("{\"key\":\"a\",\"o\":{\"value\":\"1\"}}"),
            "words, line 1: no member \"value\"; expected it in every object; choose one with "
            "--value-column");
  EXPECT_EQ(read_ndjson("{}", index_options()).error,
            "words, line 1: no member \"value\"; expected it in every object; choose one with "
            "--value-column");
}

// A member of the line before must not stand in for a missing one.
TEST(NdjsonSource, ForgetsTheLineBefore) {
  const Outcome outcome = read_ndjson("{\"key\":\"a\",\"value\":\"1\"}\n{\"key\":\"b\"}\n");
  EXPECT_EQ(outcome.pairs.size(), 1u);
  EXPECT_NE(outcome.error, "");
  EXPECT_EQ(read_ndjson("{\"key\":\"a\",\"value\":\"1\"}\n{\"key\":\"\",\"value\":\"\"}\n"),
            pairs({{"a", "1", 1}, {"", "", 2}}));
}

TEST(NdjsonSource, RefusesAMemberThatIsThereTwice) {
  EXPECT_EQ(error("{\"key\":\"a\",\"value\":\"1\",\"key\":\"a\"}"),
            "words, line 1: member \"key\" twice; expected it once");
  EXPECT_EQ(error("{\"key\":\"a\",\"value\":\"1\",\"v\\u0061lue\":2}"),
            "words, line 1: member \"value\" twice; expected it once");
}

TEST(NdjsonSource, LimitsNesting) {
  const auto nested = [](size_t levels) {  // of arrays, within the object
    return "{\"key\":\"a\",\"x\":" + std::string(levels, '[') + std::string(levels, ']') +
           ",\"value\":\"1\"}";
  };
  const std::string too_deep = "words, line 1: values nested too deep; expected at most 64 levels";
  EXPECT_EQ(read_ndjson(nested(63)), pairs({{"a", "1", 1}}));
  EXPECT_EQ(error(nested(64)), too_deep);
  EXPECT_EQ(error("{\"x\":" + std::string(1'000'000, '[')), too_deep);
  EXPECT_EQ(error(std::string(1'000'000, '[')),
            "words, line 1: an array; expected one JSON object a line");
  std::string objects;
  for (int i = 0; i < 100'000; ++i) objects += "{\"x\":";
  EXPECT_EQ(error(objects), too_deep);
}

TEST(NdjsonSource, ShowsLittleOfTheData) {
  EXPECT_LT(error("{\"key\":\"" + std::string(5000, 'k') + "\n").size(), 250u);
  EXPECT_LT(error("{\"n\":1" + std::string(5000, '7') + "e9999}").size(), 180u);
  EXPECT_LT(error(std::string(5000, 'x')).size(), 250u);
}

}  // namespace
}  // namespace blindfuse
