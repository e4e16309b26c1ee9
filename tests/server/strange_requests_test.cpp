// Requests that are made to be misunderstood.
#include "tests/server/attacks.h"

namespace blindfuse::server_testing {
namespace {

using StrangeRequests = Attacks;

TEST_F(StrangeRequests, QueriesForARetiredEpochCostNoBody) {
  start(few_threads());
  const std::string body = pack(random_query(1), kQueryBits);
  for (int i = 0; i < 50; ++i) {
    LoopbackClient client(url());
    client.send(post_head("/v1/epochs/" + kOldEpoch + "/queries", "application/octet-stream",
                          std::to_string(body.size())));
    const HttpResponse response = client.receive();
    EXPECT_EQ(response.status, 410);
    EXPECT_EQ(response.epoch(), database_.epoch);
  }
  EXPECT_TRUE(control_->batches.empty());
  expect_good_clients_served();
}

TEST_F(StrangeRequests, PipelinedQueriesAreAnsweredInTheirOrder) {
  start(few_threads());
  constexpr uint64_t kMany = 300;
  LoopbackClient client(url());
  std::string requests;
  for (uint64_t seed = 0; seed < kMany; ++seed) requests += query_request(seed);
  client.send(requests);
  expect_healthy();
  for (uint64_t seed = 0; seed < kMany; ++seed) expect_answer(client, seed);
}

TEST_F(StrangeRequests, AmbiguousRequestsAreRefused) {
  start(few_threads());
  const std::string line = "POST " + queries_path() + " HTTP/1.1\r\n";
  const std::string type = "Content-Type: application/octet-stream\r\n";
  const std::string host = "Host: x\r\n";
  for (const std::string& headers :
       {host + host + "Content-Length: 4\r\n",
        host + "Content-Length: 4\r\nContent-Length: 4\r\n",
        host + "Content-Length: 4\r\nContent-Length: 5\r\n",
        host + "Content-Length: 4, 4\r\n",
        host + "Content-Length: 4\r\nTransfer-Encoding: chunked\r\n",
        host + "Transfer-Encoding: chunked\r\nTransfer-Encoding: chunked\r\n",
        host + "Transfer-Encoding: chunked, identity\r\n",
        host + "Transfer-Encoding: xchunked\r\n",
        host + "Content-Length: -4\r\n",
        host + "Content-Length: +4\r\n",
        host + "Content-Length: 0x4\r\n",
        host + "Content-Length: 4 4\r\n",
        host + "Content-Length: \r\n",
        host + "Content-Length: 18446744073709551616\r\n",
        host + "Content-Length: 99999999999999999999999999999999\r\n",
        host + "Content-Length : 4\r\n",
        host + "Content-Length: 4\r\n folded\r\n",
        host + "Content-Length: 4\r\nX: a\rb\r\n",
        host + "Content-Length: 4\nX: a\r\n",
        host + std::string("X: a\0b\r\n", 8),
        host + "\xff\xfe: a\r\n",
        host + ": a\r\n",
        host + type}) {
    expect_refused(line + type + headers + "\r\nabcd" + get_request("/v1/database"), 400,
                   "malformed-request");
  }
  for (const char* length : {"18446744073709551615", "9223372036854775808", "4294967296"}) {
    expect_refused(post_head(queries_path(), "application/octet-stream", length) + "abcd", 413,
                   "body-too-large");
    expect_refused(post_head(queries_path(), "application/json", length) + "abcd", 413,
                   "body-too-large");
  }
  expect_good_clients_served();
}

TEST_F(StrangeRequests, PathsLeadNowhere) {
  start(few_threads());
  for (const char* path : {"/../../etc/passwd",
                           "/%2e%2e/%2e%2e/etc/passwd",
                           "/..%2f..%2fetc%2fpasswd",
                           "/v1/epochs/../../../etc/passwd",
                           "/v1/epochs/..%2f..%2f..%2fetc%2fpasswd/hint",
                           "/v1/epochs/%2e%2e/hint",
                           "/v1/epochs/..%5c..%5cboot.ini/shards",
                           "/./v1/database",
                           "/v1/./database",
                           "/v1//database",
                           "/v1/database/..",
                           "/v1/epochs/%00/hint",
                           "/manifest.json",
                           "/.lock",
                           "/retired.txt",
                           "/\xff\xfe\xc0\x80",
                           "/%ff%fe",
                           "/v1/epochs/%ff/hint",
                           "/v1/epochs/\xc0\xae\xc0\xae/hint",
                           "/%",
                           "/%zz",
                           "/%2"}) {
    const HttpResponse response = ask(get_request(path));
    EXPECT_TRUE(response.status == 404 || response.status == 400) << path << response.status;
    EXPECT_FALSE(response.problem().empty());  // it is JSON, whatever the path holds
  }
  expect_healthy();
}

TEST_F(StrangeRequests, StrangeJsonIsRefused) {
  start(few_threads());
  const std::string query = base64_of(pack(random_query(1), kQueryBits));
  const auto repeated = [](const std::string& text, int times) {
    std::string all;
    for (int i = 0; i < times; ++i) all += text;
    return all;
  };
  const std::vector<std::string> bodies = {
      std::string(2500, '['),
      std::string(1250, '[') + std::string(1250, ']'),
      "{\"queries\":" + std::string(2500, '['),
      repeated("{\"queries\":", 250),
      "{\"queries\":[\"" + query + "\"],\"queries\":[\"" + query + "\"]}",
      "{\"queries\":[\"" + query + "\"]}{}",
      "{\"queries\":[\"" + query.substr(4) + "\xff\xff\xff\xff\"]}",
      "{\"queries\":[\"" + query.substr(6) + "\\ud800\"]}",
      "{\"queries\":[\"\xc3\x28\"]}",
      std::string("{\"queries\":[\"\0\"]}", 16),
      "\xef\xbb\xbf{\"queries\":[]}",
      "{\"queries\":[" + std::string(1000, '9') + "]}",
      std::string("{\"queries\":[1e999999]}"),
      "{\"queries\":[\"" + query + "\",]}",
      "{\"queries\":null}",
      "null",
      "\"\"",
      " ",
      "\"",
      "{\"\\u0071ueries\":[\"" + query + "\"",
      "{\"queries\":[\"" + query + "\"],\"x\":1}"};
  for (const std::string& body : bodies) {
    const HttpResponse response = ask(json_request(body));
    EXPECT_EQ(response.status, 400) << body.substr(0, 60);
    EXPECT_EQ(response.problem(), "malformed-queries") << body.substr(0, 60);
  }
  expect_good_clients_served();
}

}  // namespace
}  // namespace blindfuse::server_testing
