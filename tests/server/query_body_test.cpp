#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <set>

#include "host/server/routes/problem.h"
#include "host/server/routes/query_body.h"
#include "src/base/base64.h"
#include "src/base/errors.h"
#include "tests/support.h"

namespace blindfuse {
namespace {

constexpr QueryBodyLimits kLimits{.query_bytes = 4, .query_count_max = 3};

std::string parse(BodyFormat format, std::string body) {
  const auto queries = read_query_body(format, body, kLimits);
  return {reinterpret_cast<const char*>(queries.data()), queries.size()};
}

std::string parse_json(const std::string& body) { return parse(BodyFormat::kJson, body); }

std::string json_error(const std::string& body) {
  const std::string error = support::input_error_of([&] { parse_json(body); });
  EXPECT_NE(error, "") << body << " was accepted";
  return error;
}

// "QUJDRA==" is ABCD, "RUZHSA==" is EFGH.
TEST(QueryBody, ReadsJson) {
  EXPECT_EQ(parse_json(R"({"queries":["QUJDRA=="]})"), "ABCD");
  EXPECT_EQ(parse_json(" {\n\t\"queries\" : [ \"QUJDRA==\" ,\r\n\"RUZHSA==\" ] } \n"), "ABCDEFGH");
  EXPECT_EQ(parse_json(R"({"queries":["QUJDRA==","RUZHSA==","QUJDRA=="]})"), "ABCDEFGHABCD");
  EXPECT_EQ(parse_json(R"({"\u0071ueries":["\u0051UJDRA=="]})"), "ABCD");
  // A slash may be written with a backslash in JSON.
  EXPECT_EQ(parse_json(R"({"queries":["\/\/\/\/\/w=="]})"), std::string(4, '\xff'));
}

TEST(QueryBody, RefusesOtherJson) {
  for (const char* body :
       {"[]", "1", "\"QUJDRA==\"", "null", "true", "{}", R"({"queries":{}})",
        R"({"queries":"QUJDRA=="})", R"({"queries":[1]})", R"({"queries":[1.5]})",
        R"({"queries":[-1]})", R"({"queries":[null]})", R"({"queries":[true]})",
        R"({"queries":[["QUJDRA=="]]})", R"({"queries":[{}]})", R"({"query":["QUJDRA=="]})",
        R"({"queries":["QUJDRA=="],"more":1})", R"({"more":1,"queries":["QUJDRA=="]})"}) {
    EXPECT_THAT(json_error(body), testing::HasSubstr("the body must be {\"queries\":")) << body;
  }
  EXPECT_EQ(json_error(R"({"queries":["QUJDRA=="],"queries":["QUJDRA=="]})"),
            "\"queries\" is given twice");
  EXPECT_EQ(json_error(R"({"queries":[]})"), "there is no query in the request");
  EXPECT_EQ(json_error(R"({"queries":["QUJDRA==","QUJDRA==","QUJDRA==","QUJDRA=="]})"),
            "more than 3 queries in one request");
}

TEST(QueryBody, NamesThePlaceOfBrokenJsonWithoutQuotingIt) {
  for (const char* body :
       {"", "{", "{\"queries\":[\"secret\x01\"]}", "{\"queries\":[\"\xff\"]}",
        R"({"queries":["QUJDRA=="]} x)", R"({"queries":["QUJDRA==",]})",
        R"({'queries':["QUJDRA=="]})", R"({"queries":["secret)", R"({"queries":[1e999]})",
        "/* */ {}", R"({"queries":["QUJDRA=="]}{})", "{\"queries\":[\"\xc3\x28\"]}",
        R"({"queries":["QUJD\ud800"]})", " ", "\"", R"({"\u0071ueries":["QUJDRA=="])"}) {
    const std::string error = json_error(body);
    EXPECT_THAT(error, testing::StartsWith("not JSON at byte ")) << body;
    EXPECT_THAT(error, testing::Not(testing::HasSubstr("secret")));
  }
}

// To the parser, a byte of zero is the end of the text.
TEST(QueryBody, RefusesWhatFollowsAByteOfZero) {
  const std::string body = R"({"queries":["QUJDRA=="]})";
  for (const std::string& after : {std::string(), std::string("x"), body}) {
    EXPECT_THAT(json_error(body + '\0' + after), testing::StartsWith("not JSON at byte 25; "));
  }
}

TEST(QueryBody, RefusesEndlessNestingAtOnce) {
  json_error(std::string(5'000'000, '['));
  std::string objects;
  for (int i = 0; i < 500'000; ++i) objects += "{\"queries\":";
  json_error(objects);
}

TEST(QueryBody, NamesTheQueryAndTheLengthItShouldHave) {
  EXPECT_EQ(json_error(R"({"queries":["QUJDRA==","QUJD"]})"),
            "query 2 has 4 base64 characters; expected 8 for 4 bytes");
  EXPECT_EQ(json_error(R"({"queries":[""]})"),
            "query 1 has 0 base64 characters; expected 8 for 4 bytes");
  for (const char* text :
       {"QUJDRE==", "QUJDRA=A", "QUJDR===", "QUJDREVG", "QUJ RA==", "QUJ-RA==", "========"}) {
    EXPECT_THAT(json_error(std::string(R"({"queries":[")") + text + "\"]}"),
                testing::StartsWith("query 1 is not base64 of 4 bytes"))
        << text;
  }
}

// The parser would keep several copies of one before anybody could say that it is too long.
TEST(QueryBody, RefusesStringsBeforeTheParserCopiesThem) {
  const std::string longest(16, 'A');
  EXPECT_EQ(json_error(R"({"queries":[")" + longest + "\"]}"),
            "query 1 has 16 base64 characters; expected 8 for 4 bytes");
  std::string quotes;
  for (int i = 0; i < 9; ++i) quotes += "\\\"";
  for (const std::string& text :
       {longest + "A", longest + "\\/", longest + "\\\"", quotes, std::string(100'000, 'A')}) {
    EXPECT_THAT(json_error(R"({"queries":[")" + text + "\"]}"),
                testing::StartsWith("a string has more than 16 characters, with escapes"));
  }
  EXPECT_THAT(json_error("\"" + longest + "A"), testing::StartsWith("a string has more than 16"));
}

// A number of many digits would be copied, too, and its value would take seconds.
TEST(QueryBody, RefusesLongNumbersAndWordsBeforeTheParserReadsThem) {
  // 1024, and 64 for each of three queries.
  constexpr size_t kFrame = 1216;
  const std::string begin = R"({"queries":[)";
  const size_t outside = std::string("{:[").size();
  const std::string longest(kFrame - outside - 2, '1');  // and the two brackets at the end
  EXPECT_THAT(json_error(begin + longest + "]}"), testing::StartsWith("not JSON at byte "));
  for (const char c : {'1', 't', ' ', '[', ':'}) {
    EXPECT_THAT(json_error(begin + std::string(kFrame, c) + "]}"),
                testing::StartsWith("there are more than 1216 bytes outside of strings"))
        << c;
  }
  // White space costs nothing where no general parser is needed.
  EXPECT_EQ(parse_json(begin + std::string(10'000, ' ') + "\"QUJDRA==\"]}"), "ABCD");
}

TEST(QueryBody, ReadsBinary) {
  EXPECT_EQ(parse(BodyFormat::kBinary, "ABCD"), "ABCD");
  EXPECT_EQ(parse(BodyFormat::kBinary, "ABCDEFGHABCD"), "ABCDEFGHABCD");
  for (const size_t size : {0u, 1u, 3u, 5u, 11u, 13u, 16u}) {
    EXPECT_THROW(parse(BodyFormat::kBinary, std::string(size, 'x')), InputError) << size;
  }
  EXPECT_EQ(support::input_error_of([] { check_binary_length(5, kLimits); }),
            "the body has 5 bytes; expected 1 to 3 queries of 4 bytes each");
}

TEST(QueryBody, WritesResponses) {
  EXPECT_EQ(write_response_body(BodyFormat::kBinary, "ABCDE", 5), "ABCDE");
  EXPECT_EQ(write_response_body(BodyFormat::kJson, "ABCD", 4), "{\"responses\":[\"QUJDRA==\"]}\n");
  EXPECT_EQ(write_response_body(BodyFormat::kJson, "ABCDEFGH", 4),
            "{\"responses\":[\"QUJDRA==\",\"RUZHSA==\"]}\n");
}

TEST(QueryBody, LimitsLeaveRoomForEveryRightBody) {
  EXPECT_EQ(kLimits.body_bytes_max(BodyFormat::kBinary), 12u);
  // As an indenting printer writes it.
  std::string body = "{\n    \"queries\": [\n";
  for (int i = 0; i < 3; ++i) body += "        \"QUJDRA==\",\n";
  EXPECT_GE(kLimits.body_bytes_max(BodyFormat::kJson), body.size() + 10);
  const QueryBodyLimits large{.query_bytes = uint64_t{1} << 33, .query_count_max = 65'536};
  EXPECT_GT(large.body_bytes_max(BodyFormat::kJson), uint64_t{1} << 49);
}

TEST(Problem, HasATypeOfItsOwnForEveryKind) {
  std::set<std::string> types;
  const int last = static_cast<int>(ProblemKind::kUnsupportedVersion);
  for (int kind = 0; kind <= last; ++kind) {
    const Problem problem{.kind = static_cast<ProblemKind>(kind), .detail = ""};
    const auto document = nlohmann::json::parse(serialize_problem(problem));
    EXPECT_TRUE(types.insert(document.at("type")).second);
    EXPECT_FALSE(document.contains("epoch"));
    EXPECT_EQ(problem_of(http::Error(problem.status(), "x")).status(), problem.status());
  }
  EXPECT_EQ(problem_of(http::Error(400, "x")).kind, ProblemKind::kMalformedRequest);
  EXPECT_EQ(problem_of(http::Error(404, "x")).kind, ProblemKind::kUnknownRoute);
  EXPECT_EQ(problem_of(http::Error(418, "x")).kind, ProblemKind::kInternalError);
}

}  // namespace
}  // namespace blindfuse
