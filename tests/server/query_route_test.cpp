// Private look-ups over HTTP, and everything that a body can have wrong.
#include <gtest/gtest.h>

#include "src/base/utf8.h"
#include "tests/server/running_server.h"

namespace blindfuse::server_testing {
namespace {

class QueryRoute : public RunningServer {
 protected:
  void SetUp() override { start(); }

  static std::string json(uint64_t count) {
    auto list = nlohmann::json::array();
    for (uint64_t seed = 0; seed < count; ++seed) list.push_back(base64_of(queries(1, seed)));
    return nlohmann::json{{"queries", list}}.dump();
  }

  // A request for queries with these lines and this body.
  std::string with_lines(const std::string& lines, const std::string& body) const {
    return "POST " + queries_path() + " HTTP/1.1\r\nHost: x\r\n" + lines +
           "Content-Length: " + std::to_string(body.size()) + "\r\n\r\n" + body;
  }
  std::string chunked_head() const {
    return "POST " + queries_path() + " HTTP/1.1\r\nHost: x\r\n" + kBinary +
           "Transfer-Encoding: chunked\r\n\r\n";
  }
  static constexpr char kBinary[] = "Content-Type: application/octet-stream\r\n";

  // Refused after its body has been read: the connection goes on.
  void expect_malformed(const std::string& request, const std::string& detail) {
    SCOPED_TRACE(request.substr(request.find("\r\n\r\n"), 100));
    LoopbackClient client(url());
    const HttpResponse response = client.ask(request);
    expect_problem(response, 400, "malformed-queries");
    EXPECT_EQ(response.detail(), detail);
    EXPECT_EQ(client.ask(binary_request(queries(1))).status, 200);
  }
};

std::string chunk(const std::string& bytes) {
  char size[32];
  std::snprintf(size, sizeof size, "%zx\r\n", bytes.size());
  return size + bytes + "\r\n";
}

TEST_F(QueryRoute, AnswersBinaryQueries) {
  for (uint64_t count = 1; count <= 3; ++count) {
    const HttpResponse response = ask(binary_request(queries(count)));
    EXPECT_EQ(response.status, 200);
    EXPECT_EQ(response.header("content-type"), "application/octet-stream");
    EXPECT_EQ(response.header("cache-control"), "no-store");
    EXPECT_EQ(response.body, responses(count));
  }
}

TEST_F(QueryRoute, AnswersJsonQueries) {
  for (uint64_t count = 1; count <= 3; ++count) {
    const HttpResponse response = ask(json_request(json(count)));
    EXPECT_EQ(response.status, 200);
    EXPECT_EQ(response.header("content-type"), "application/json");
    auto expected = nlohmann::json::array();
    for (uint64_t seed = 0; seed < count; ++seed) {
      expected.push_back(base64_of(responses(1, seed)));
    }
    EXPECT_EQ(nlohmann::json::parse(response.body), (nlohmann::json{{"responses", expected}}));
  }
}

TEST_F(QueryRoute, TakesContentTypesAsTheyAreWritten) {
  for (const char* type :
       {"application/json; charset=utf-8", "Application/JSON", "application/json ;x=y"}) {
    EXPECT_EQ(ask(post_request(queries_path(), type, json(1))).status, 200) << type;
  }
  EXPECT_EQ(ask(post_request(queries_path(), "APPLICATION/octet-stream", queries(1))).status, 200);
}

TEST_F(QueryRoute, RefusesOtherContentTypes) {
  for (const char* type : {"text/plain", "application/x-www-form-urlencoded",
                           "multipart/form-data; boundary=x", "application/jsonx", "json", "*/*"}) {
    expect_refused(post_request(queries_path(), type, json(1)), 415, "unsupported-media-type");
  }
  expect_refused(with_lines("", "abcde"), 415, "unsupported-media-type");
  // "identity" changes nothing, in upper or lower case (RFC 9110, section 8.4.1).
  for (const std::string encoding : {"gzip", "br", "deflate", "gzip, br", "identity", "Identity"}) {
    SCOPED_TRACE(encoding);
    const HttpResponse response =
        ask(with_lines("Content-Encoding: " + encoding + "\r\n" + kBinary, queries(1)));
    if (equal_ignoring_case(encoding, "identity")) {
      EXPECT_EQ(response.status, 200);
    } else {
      expect_problem(response, 415, "unsupported-media-type");
      EXPECT_EQ(response.header("accept-encoding"), "identity");
    }
  }
}

// docs/HTTP_API.md has this order. Each step corrects what the one before was refused for.
TEST_F(QueryRoute, RefusesWhatIsFirstInTheOrder) {
  start(with_keys());
  const std::string key = kKey;
  const auto length = [](size_t bytes) {
    return "Content-Length: " + std::to_string(bytes) + "\r\n";
  };
  struct Step {
    std::string line;
    std::string headers;
    std::string problem;
  };
  const std::string old = old_path("/queries"), post = "POST " + queries_path() + " HTTP/1.1";
  for (const Step& step : std::vector<Step>{
           {"FROB /nowhere HTTP/9.9", "", "unsupported-version"},
           {"FROB /nowhere HTTP/1.1", length(5), "unknown-method"},
           {"PUT /nowhere HTTP/1.1", length(5), "unknown-route"},
           {"PUT " + old + " HTTP/1.1", length(5), "method-not-allowed"},
           {"POST " + old + " HTTP/1.1", length(5), "unauthorized"},
           {"POST " + old + " HTTP/1.1", key + length(5), "retired-epoch"},
           {post, key, "unsupported-media-type"},
           {post, key + kBinary, "length-required"},
           {post, key + kBinary + length(1'000'000), "body-too-large"},
           {post, key + kBinary + length(5), "malformed-queries"},
           {"GET /v1/database HTTP/1.1", length(5), "malformed-request"},
           {"GET " + epoch_path("/hint?x=1") + " HTTP/1.1", "", "unauthorized"},
           {"GET " + old_path("/hint?x=1") + " HTTP/1.1", key, "retired-epoch"},
           {"GET " + epoch_path("/hint?x=1") + " HTTP/1.1", key + "If-None-Match: *\r\n",
            "malformed-shards"},
       }) {
    const HttpResponse response = ask(step.line + "\r\nHost: x\r\n" + step.headers + "\r\n");
    EXPECT_EQ(response.problem(), step.problem) << step.line << "\n" << step.headers;
  }
  LoopbackClient client(url());
  client.send(
      get_request(epoch_path("/hint"), key + "If-None-Match: *\r\nRange: bytes=99999999-\r\n"));
  EXPECT_EQ(client.receive().status, 304) << "a condition comes before the range";
}

// Parsers of JSON may ignore it (RFC 8259, section 8.1), and this one does.
TEST_F(QueryRoute, PassesOverAByteOrderMarkInJson) {
  EXPECT_EQ(ask(json_request("\xef\xbb\xbf" + json(1))).status, 200);
}

TEST_F(QueryRoute, RefusesBinaryBodiesOfOtherLengthsBeforeReadingThem) {
  const std::string expected =
      "; expected 1 to 3 queries of " + std::to_string(kQueryBytes) + " bytes each";
  for (const uint64_t length :
       {uint64_t{1}, kQueryBytes - 1, kQueryBytes + 1, 3 * kQueryBytes - 1}) {
    expect_refused(
        post_request(queries_path(), "application/octet-stream", std::string(length, 'x')), 400,
        "malformed-queries");
    const HttpResponse response =
        ask(post_head(queries_path(), "application/octet-stream", std::to_string(length)));
    EXPECT_EQ(response.detail(), "the body has " + std::to_string(length) + " bytes" + expected);
  }
  EXPECT_EQ(ask(post_request(queries_path(), "application/octet-stream", "")).problem(),
            "malformed-queries");
  expect_refused(post_request(queries_path(), "application/octet-stream",
                              std::string(3 * kQueryBytes + 1, 'x')),
                 413, "body-too-large");
}

TEST_F(QueryRoute, RefusesMalformedJson) {
  const std::string good = base64_of(queries(1));
  const std::string length = std::to_string(good.size());
  expect_malformed(json_request("{\"queries\":[\"" + good + "\",\"abcd\"]}"),
                   "query 2 has 4 base64 characters; expected " + length + " for " +
                       std::to_string(kQueryBytes) + " bytes");
  std::string wrong = good;
  wrong[10] = '*';
  expect_malformed(json_request("{\"queries\":[\"" + wrong + "\"]}"),
                   "query 1 is not base64 of " + std::to_string(kQueryBytes) +
                       " bytes (RFC 4648 section 4, with padding)");
  expect_malformed(json_request("{\"queries\":[]}"), "there is no query in the request");
  expect_malformed(json_request(json(4)), "more than 3 queries in one request");
  expect_malformed(json_request("{\"queries\":"),
                   "not JSON at byte 12; the body must be {\"queries\": [\"<base64>\", ...]}");
  expect_malformed(json_request(std::string(1'000, '[')),
                   "the body must be {\"queries\": [\"<base64>\", ...]}");
}

TEST_F(QueryRoute, BoundsJsonBodiesByTheirLength) {
  const QueryBodyLimits limits{kQueryBytes, 3};
  const uint64_t most = limits.body_bytes_max(BodyFormat::kJson);
  std::string body = json(3);
  body += std::string(most - body.size(), ' ');
  EXPECT_EQ(ask(json_request(body)).status, 200) << "the longest body that is allowed";
  expect_refused(json_request(body + ' '), 413, "body-too-large");
  EXPECT_EQ(ask(post_head(queries_path(), "application/json", std::to_string(most + 1))).detail(),
            "the body has " + std::to_string(most + 1) + " bytes; at most " + std::to_string(most) +
                " for 3 queries");
  expect_refused(post_head(queries_path(), "application/json", "18446744073709551615"), 413,
                 "body-too-large");
}

// body_reader_test.cpp has all that the framing can have wrong.
TEST_F(QueryRoute, TakesChunkedBodiesUpToTheSameLimit) {
  const std::string body = queries(3);
  LoopbackClient client(url());
  const HttpResponse response =
      client.ask(chunked_head() + "1;name=value\r\n" + body[0] + "\r\n" +
                 chunk(body.substr(1, 700)) + chunk(body.substr(701)) + "0\r\nDigest: x\r\n\r\n");
  EXPECT_EQ(response.status, 200);
  EXPECT_EQ(response.body, responses(3));
  EXPECT_EQ(response.header("connection"), "close");
  EXPECT_TRUE(client.is_closed());

  expect_refused(chunked_head() + chunk(body + "x") + "0\r\n\r\n", 413, "body-too-large");
  expect_refused(chunked_head() + chunk(std::string(1 << 20, 'x')) + "0\r\n\r\n", 413,
                 "body-too-large");
  expect_refused(chunked_head() + chunk(body.substr(1)) + "0\r\n\r\n", 400, "malformed-queries");
  expect_refused(chunked_head() + "0\r\n\r\n", 400, "malformed-queries");
  expect_refused(chunked_head() + "xyz\r\n", 400, "malformed-request");
  expect_healthy();
}

// Which may be all of a query: only its end would have said so.
TEST_F(QueryRoute, RefusesABodyThatIsCutOff) {
  const std::string body = queries(1);
  for (const std::string& part :
       {binary_request(body).substr(0, binary_request(body).size() - 1),
        post_head(queries_path(), "application/octet-stream", std::to_string(body.size())),
        chunked_head() + chunk(body), chunked_head() + chunk(body) + "0\r\n", chunked_head()}) {
    LoopbackClient client(url());
    client.send(part);
    client.finish_sending();
    const HttpResponse response = client.receive();
    expect_problem(response, 400, "malformed-request");
    EXPECT_EQ(response.detail(), "the body is cut off");
    EXPECT_TRUE(client.is_closed());
  }
  EXPECT_TRUE(control_->batches.empty());
}

TEST_F(QueryRoute, AsksForALength) {
  LoopbackClient client(url());
  const HttpResponse response = client.ask(
      "POST " + queries_path() + " HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\n\r\n");
  expect_problem(response, 411, "length-required");
  EXPECT_EQ(client.ask(binary_request(queries(1))).status, 200)
      << "there was no body to leave unread";
}

TEST_F(QueryRoute, SaysContinueOnlyToWhatItIsGoingToTake) {
  const auto expecting = [&](const std::string& path, const std::string& length) {
    return "POST " + path +
           " HTTP/1.1\r\nHost: x\r\nContent-Type: application/octet-stream\r\n"
           "Expect: 100-continue\r\nContent-Length: " +
           length + "\r\n\r\n";
  };
  LoopbackClient client(url());
  client.send(expecting(queries_path(), std::to_string(kQueryBytes)));
  EXPECT_EQ(client.receive().status, 100);
  client.send(queries(1));
  expect_answer(client, 0);

  expect_refused(expecting(queries_path(), "5"), 400, "malformed-queries");
  expect_refused(expecting(queries_path(), "999999999"), 413, "body-too-large");
  expect_refused(expecting(old_path("/queries"), "5"), 410, "retired-epoch");
  expect_refused(expecting("/nowhere", "5"), 404, "unknown-route");
}

TEST_F(QueryRoute, RefusesOtherEpochsBeforeReadingTheBody) {
  const std::string unknown_path = "/v1/epochs/" + std::string(64, 'e') + "/queries";
  for (const auto& [path, status, problem] :
       {std::tuple(old_path("/queries"), 410, "retired-epoch"),
        {unknown_path, 404, "unknown-epoch"}}) {
    expect_refused(post_request(path, "application/octet-stream", queries(1)), status, problem);
    EXPECT_EQ(ask(post_head(path, "application/octet-stream", "100")).epoch(), database_.epoch);
  }
  EXPECT_TRUE(control_->batches.empty());
}

TEST_F(QueryRoute, SaysWhenTheQueueIsFull) {
  start(default_options(), {.batch_max = 1, .queue_max = 3});
  Clients clients;
  send_held(clients, 0);
  send_waiting(clients, 1, 1);
  // At once: the engine does nothing all the while.
  LoopbackClient client(url());
  for (int i = 0; i < 100; ++i) {
    const HttpResponse response = client.ask(binary_request(queries(3)));
    expect_problem(response, 503, "busy");
    EXPECT_EQ(response.header("retry-after"), "1");
  }
  EXPECT_EQ(client.ask(get_request("/health/live")).status, 200) << "the connection goes on";

  control_->release();
  expect_answer(clients[0], 0);
  expect_answer(clients[1], 1);
  expect_healthy();
}

TEST_F(QueryRoute, SaysWhenTheEngineFails) {
  control_->fail(true);
  LoopbackClient client(url());
  const HttpResponse response = client.ask(binary_request(queries(2)));
  expect_problem(response, 503, "engine-failed");
  EXPECT_EQ(response.header("retry-after"), "1");
  EXPECT_EQ(response.detail().find("the test wants"), std::string::npos)
      << "what went wrong inside is for the log";
  control_->fail(false);
  EXPECT_EQ(client.ask(binary_request(queries(1))).status, 200);
}

}  // namespace
}  // namespace blindfuse::server_testing
