// Access over HTTP: API keys, and pages of other origins.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/server/running_server.h"

namespace blindfuse::server_testing {
namespace {

using ::testing::HasSubstr;

class Access : public RunningServer {
 protected:
  static ServerOptions with_origins(std::vector<std::string> origins) {
    ServerOptions options = default_options();
    options.api.cors_origins = std::move(origins);
    return options;
  }
  std::string query_head(const std::string& headers, const std::string& length) const {
    return "POST " + queries_path() +
           " HTTP/1.1\r\nHost: x\r\nContent-Type: application/octet-stream\r\nContent-Length: " +
           length + "\r\n" + headers + "\r\n";
  }
  std::string query_with(const std::string& headers, const std::string& body) const {
    return query_head(headers, std::to_string(body.size())) + body;
  }
  HttpResponse get_from(const std::string& origin, const std::string& path = "/v1/database",
                        const std::string& method = "GET") {
    LoopbackClient client(url());
    client.send(get_request(path, "Origin: " + origin + "\r\n", method));
    return client.receive(method == "OPTIONS");
  }
};

// Three queries a minute for each client, at a time that stands still.
class Quotas : public Access {
 protected:
  void start_with(const ServerOptions& options, const http::ListenAddress& address = {}) {
    const auto now = std::chrono::steady_clock::now();
    start(options,
          {.batch_max = 4,
           .queue_max = 8,
           .client_queries_per_minute_max = 3,
           .quota_clock = [now] { return now; }},
          address);
  }
  HttpResponse ask_with(const std::string& headers, size_t count = 1) {
    return ask(query_with(headers, queries(count)));
  }
  void use_up(const std::string& headers) {
    for (int i = 0; i < 3; ++i) EXPECT_EQ(ask_with(headers).status, 200) << headers;
    expect_over(headers);
  }
  void expect_over(const std::string& headers) {
    const HttpResponse response = ask_with(headers);
    SCOPED_TRACE(headers);
    expect_problem(response, 429, "over-quota");
    EXPECT_EQ(response.header("retry-after"), "20");
  }
};

TEST_F(Quotas, AreThoseOfAddresses) {
  start_with(default_options());
  use_up("");
  // Whoever may connect may send any header.
  expect_over("X-Real-IP: 192.0.2.7\r\nX-Forwarded-For: 192.0.2.7\r\n");
  EXPECT_EQ(ask_with("", 3).header("retry-after"), "60");
  EXPECT_EQ(ask(get_request("/v1/database")).status, 200) << "of queries alone";
  EXPECT_EQ(metric("blindfuse_queries_total{outcome=\"over_quota\"}"), 5);
  EXPECT_EQ(metric("blindfuse_http_requests_total{route=\"queries\",status=\"429\"}"), 3);
}

TEST_F(Quotas, AreThoseOfTheAddressesThatAProxyNames) {
  ServerOptions options = default_options();
  options.api.client_address_header = "X-Forwarded-For";
  start_with(options);
  use_up("X-Forwarded-For: 192.0.2.7\r\n");
  // Before its own the proxy leaves what the client has sent.
  expect_over("X-Forwarded-For: 192.0.2.8, 192.0.2.7\r\n");
  expect_over("X-Forwarded-For: 192.0.2.8\r\nx-forwarded-for: 192.0.2.7\r\n");
  expect_over("X-Forwarded-For: ::ffff:192.0.2.7\r\n");
  use_up("X-Forwarded-For: 192.0.2.7,192.0.2.8\r\n");
  use_up("X-Forwarded-For: 2001:db8:0:1::1\r\n");
  expect_over("X-Forwarded-For: 2001:db8:0:1:ffff::\r\n");
  use_up("X-Forwarded-For: 2001:db8:0:2::1\r\n");
  // Other texts leave the proxy's own address.
  use_up("");
  expect_over("X-Forwarded-For: unknown\r\n");
  expect_over("X-Forwarded-For: \r\n");
}

TEST_F(Quotas, AreThoseOfApiKeys) {
  ServerOptions options = with_keys();
  options.api.client_address_header = "X-Real-IP";
  start_with(options);
  use_up(kKey);
  expect_over(std::string(kKey) + "X-Real-IP: 192.0.2.7\r\n");
  use_up(kOtherKey);
}

TEST_F(Quotas, AreOneForAllWhoHaveNoAddress) {
  ServerOptions options = default_options();
  options.api.client_address_header = "X-Real-IP";
  start_with(options, {.unix_path = folder_ / "socket"});
  use_up("");
  use_up("X-Real-IP: 192.0.2.7\r\n");
  expect_over("X-Real-IP: unknown\r\n");
}

// One that has half of the queue leaves the rest to others.
TEST_F(Access, GivesNoKeyTheWholeQueue) {
  start(with_keys());
  control_->hold();
  Clients clients;
  const auto ask_as = [&](const std::string& header) {
    clients.emplace_back(url()).send(query_with(header, queries(1)));
  };
  ask_as(kKey);
  control_->wait_for_batches(1);
  for (size_t i = 1; i <= 4; ++i) {
    ask_as(kKey);
    wait_for_queue(i);
  }
  LoopbackClient refused(url());
  refused.send(query_with(kKey, queries(1)));
  wait_for([&] {
    return metric("blindfuse_queries_total{outcome=\"queue_full\"}") == 1 ||
           epoch_->scheduler().waiting_count() == 5;
  });
  ask_as(kOtherKey);
  wait_for_queue(5);
  control_->release();
  EXPECT_EQ(refused.receive().problem(), "busy");
  for (LoopbackClient& client : clients) expect_answer(client, 0);
}

TEST_F(Access, NeedsAKeyForWhatIsPrivate) {
  start(with_keys());
  for (const std::string& path :
       {std::string("/v1/database"), epoch_path("/shards"), epoch_path("/hint"),
        epoch_path("/hint?shards=0"), old_path("/hint"), std::string("/v1/epochs/nonsense/hint")}) {
    for (const char* headers : {"", "Authorization: Bearer wrong\r\n", "Authorization: \r\n",
                                "Authorization: Basic a2V5OmtleQ==\r\n"}) {
      const HttpResponse response = ask(get_request(path, headers));
      SCOPED_TRACE(path);
      expect_problem(response, 401, "unauthorized");
      EXPECT_EQ(response.header("www-authenticate"), "Bearer");
    }
    EXPECT_NE(ask(get_request(path, kKey)).status, 401) << path;
  }
  EXPECT_EQ(ask(get_request("/v1/database", kKey)).body, database_.downloads->manifest_text);
}

TEST_F(Access, CountsTheQueriesOfEachKey) {
  start(with_keys());
  const auto ask_as = [&](const std::string& header, const std::string& body) {
    return ask(query_with(header, body)).status;
  };
  EXPECT_EQ(ask_as(kKey, queries(2)), 200);
  EXPECT_EQ(ask_as(kKey, queries(1)), 200);
  EXPECT_EQ(ask_as(kOtherKey, queries(1)), 200);
  EXPECT_EQ(ask_as("Authorization: Bearer wrong\r\n", queries(1)), 401);
  EXPECT_EQ(ask_as(kKey, queries(1) + "x"), 400);
  control_->fail(true);
  EXPECT_EQ(ask_as(kKey, queries(1)), 503);
  EXPECT_EQ(metric("blindfuse_api_key_queries_total{api_key=\"tester\"}"), 3);
  EXPECT_EQ(metric("blindfuse_api_key_queries_total{api_key=\"other\"}"), 1);
  EXPECT_THAT(metrics_text(), testing::Not(HasSubstr("wrong")));
}

// A cache between client and server must not give to others what took a key.
TEST_F(Access, LetsNoSharedCacheKeepWhatNeedsAKey) {
  start(with_keys());
  for (const std::string& path : {epoch_path("/shards"), epoch_path("/hint"),
                                  epoch_path("/hint?shards=0"), std::string("/v1/database")}) {
    for (const std::string& range : {std::string(), std::string("Range: bytes=0-3\r\n")}) {
      const std::string policy = ask(get_request(path, kKey + range)).header("cache-control");
      EXPECT_THAT(policy, ::testing::Not(HasSubstr("public"))) << path;
      if (path != "/v1/database") {
        EXPECT_THAT(policy, HasSubstr("private")) << path;
      }
    }
  }
}

TEST_F(Access, NeedsNoKeyForHealthAndTheDescription) {
  start(with_keys());
  for (const char* path : {"/health/live", "/health/ready", "/openapi.json"}) {
    EXPECT_EQ(ask(get_request(path)).status, 200) << path;
    EXPECT_EQ(ask(get_request(path, "Authorization: Bearer wrong\r\n")).status, 200) << path;
  }
  EXPECT_EQ(ask(get_request("/nowhere")).status, 404);
  EXPECT_EQ(ask(get_request("/v1/database", "", "DELETE")).status, 405);
}

TEST_F(Access, AnswersQueriesOfThoseWithAKey) {
  start(with_keys());
  LoopbackClient client(url());
  client.send(query_with(kKey, queries(1)));
  expect_answer(client, 0);
  EXPECT_EQ(client.ask(query_with("", queries(1))).status, 401)
      << "a key counts for its own request alone";
}

TEST_F(Access, RefusesBeforeTheBodyIsSent) {
  start(with_keys());
  // Nothing of the body ever comes.
  expect_refused(query_head("", std::to_string(kQueryBytes)), 401, "unauthorized");
  expect_refused(query_head("Expect: 100-continue\r\n", std::to_string(kQueryBytes)), 401,
                 "unauthorized");
  // Nor does anyone without a key learn which epochs there are, or what the limits are.
  expect_refused(query_head("", "99999999999"), 401, "unauthorized");
  expect_refused(post_head(old_path("/queries"), "text/plain", "5"), 401, "unauthorized");
  EXPECT_TRUE(control_->batches.empty());
}

// A client that goes on with its body reads the refusal all the same, and is not cut off.
TEST_F(Access, LetsARefusedClientFinishItsBody) {
  start(with_keys());
  LoopbackClient client(url());
  client.send(query_head("", "100000"));
  // It has been refused, and has read nothing of that yet.
  wait_for_metric("blindfuse_http_requests_total{route=\"queries\",status=\"401\"}", 1);
  for (int i = 0; i < 10; ++i) {
    ASSERT_TRUE(client.send(std::string(10'000, 'x'))) << "piece " << i;
    std::this_thread::sleep_for(std::chrono::milliseconds(5));
  }
  EXPECT_EQ(client.receive().problem(), "unauthorized");
  EXPECT_TRUE(client.is_closed());
}

TEST_F(Access, RefusesTwoKeysAtOnce) {
  start(with_keys());
  expect_problem(
      ask(get_request("/v1/database", std::string(kKey) + "Authorization: Bearer wrong\r\n")), 400,
      "malformed-request");
}

TEST_F(Access, TellsPagesOfItsOriginsThatTheyMayAsk) {
  start(with_origins({"https://one.example", "https://two.example:8443"}));
  for (const char* origin : {"https://one.example", "https://two.example:8443"}) {
    const HttpResponse response = get_from(origin);
    EXPECT_EQ(response.status, 200);
    EXPECT_EQ(response.header("access-control-allow-origin"), origin);
    EXPECT_EQ(response.header("vary"), "Origin");
    EXPECT_THAT(response.header("access-control-expose-headers"), HasSubstr("ETag"));
    EXPECT_FALSE(response.has("access-control-allow-credentials"));
  }
  // Refusals too: a page may read what was wrong.
  const HttpResponse refused = get_from("https://one.example", "/nowhere");
  EXPECT_EQ(refused.status, 404);
  EXPECT_EQ(refused.header("access-control-allow-origin"), "https://one.example");
  start(with_origins({"*"}));
  EXPECT_EQ(get_from("https://any.example").header("access-control-allow-origin"), "*");
}

TEST_F(Access, TellsOthersNothing) {
  start(with_origins({"https://one.example"}));
  for (const char* origin :
       {"https://other.example", "http://one.example", "https://one.example:444",
        "https://one.example.evil.example", "https://one.exampl", "null", "*",
        "HTTPS://ONE.EXAMPLE", "https://one.example, https://other.example"}) {
    const HttpResponse response = get_from(origin);
    EXPECT_EQ(response.status, 200);
    EXPECT_FALSE(response.has("access-control-allow-origin")) << origin;
    EXPECT_EQ(response.header("vary"), "Origin") << "a cache must not hand it to others";
  }
  const HttpResponse no_page = ask(get_request("/v1/database"));
  EXPECT_FALSE(no_page.has("access-control-allow-origin"));
  EXPECT_EQ(no_page.header("vary"), "Origin");
}

TEST_F(Access, AnswersPreflights) {
  start(with_origins({"https://one.example"}));
  LoopbackClient client(url());
  client.send(get_request(queries_path(),
                          "Origin: https://one.example\r\nAccess-Control-Request-Method: POST\r\n"
                          "Access-Control-Request-Headers: content-type\r\n",
                          "OPTIONS"));
  const HttpResponse response = client.receive(true);
  EXPECT_EQ(response.status, 204);
  EXPECT_EQ(response.header("access-control-allow-origin"), "https://one.example");
  EXPECT_THAT(response.header("access-control-allow-methods"), HasSubstr("POST"));
  EXPECT_THAT(response.header("access-control-allow-headers"), HasSubstr("Content-Type"));
  EXPECT_THAT(response.header("access-control-allow-headers"), HasSubstr("Authorization"));
  client.send(get_request(queries_path(), "Origin: https://other.example\r\n", "OPTIONS"));
  const HttpResponse other = client.receive(true);
  EXPECT_EQ(other.status, 204);
  EXPECT_FALSE(other.has("access-control-allow-origin"));
  EXPECT_EQ(client.ask(get_request("/health/live")).status, 200) << "nothing came after the 204";
}

// A browser sends no key with its preflight.
TEST_F(Access, AnswersPreflightsWithoutAKey) {
  start(with_keys(with_origins({"https://one.example"})));
  EXPECT_EQ(get_from("https://one.example", queries_path(), "OPTIONS").status, 204);
  const HttpResponse refused = get_from("https://one.example");
  EXPECT_EQ(refused.status, 401);
  EXPECT_EQ(refused.header("access-control-allow-origin"), "https://one.example");
}

TEST_F(Access, KnowsNoOptionsWithoutOrigins) {
  start();
  for (const char* headers : {"", "Origin: https://one.example\r\n"}) {
    const HttpResponse response = ask(get_request("/v1/database", headers, "OPTIONS"));
    EXPECT_EQ(response.status, 405);
    EXPECT_EQ(response.header("allow"), "GET, HEAD");
    EXPECT_FALSE(response.has("vary"));
    EXPECT_FALSE(response.has("access-control-allow-origin"));
  }
  start(with_origins({"https://one.example"}));
  EXPECT_EQ(ask(get_request("/v1/database", "", "OPTIONS")).status, 405) << "no page asks";
}

}  // namespace
}  // namespace blindfuse::server_testing
