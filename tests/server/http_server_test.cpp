// The server as a whole: many clients, broken clients, and stopping.
#include "host/server/database_server.h"

#include <gtest/gtest.h>
#include <sys/resource.h>
#include <unistd.h>

#include <filesystem>
#include <future>

#include "tests/server/running_server.h"

namespace blindfuse::server_testing {
namespace {

class HttpServerTest : public RunningServer {
 protected:
  std::string query_request(uint64_t seed) const {
    return binary_request(pack(random_query(seed), kQueryBits));
  }
};

TEST_F(HttpServerTest, TellsHealth) {
  start();
  for (const char* path : {"/health/live", "/health/ready"}) {
    const HttpResponse response = ask(get_request(path));
    EXPECT_EQ(response.status, 200);
    EXPECT_EQ(response.body, "{\"status\":\"ok\"}\n");
    EXPECT_EQ(response.header("content-type"), "application/json");
  }
}

TEST_F(HttpServerTest, KnowsItsRoutes) {
  start();
  LoopbackClient client(url());
  for (const std::string& path :
       {std::string("/"), std::string("/v1"), std::string("/v1/database/"),
        std::string("/v1/databases"), std::string("/v1/epochs"), std::string("/v1/epochs/"),
        std::string("/v1/epochs//hint"), std::string("/metrics"), std::string("/openapi"),
        epoch_path(""), epoch_path("/"), epoch_path("/x/hint"), epoch_path("/hint/"),
        epoch_path("/../hint"), std::string("/v1/epochs/../../etc/passwd"), std::string("/%2e%2e/"),
        std::string("/v1/database%00"), std::string("//v1/database")}) {
    const HttpResponse response = client.ask(get_request(path));
    EXPECT_EQ(response.status, 404) << path;
    EXPECT_EQ(response.problem(), "unknown-route") << path;
  }
  // A percent sign that begins no encoding stays as it is, and so does a plus sign.
  for (const char* path : {"/v1/data%6xase", "/v1/data%", "/v1/data%6", "/v1/data+base"}) {
    EXPECT_EQ(client.ask(get_request(path)).problem(), "unknown-route") << path;
  }
  EXPECT_EQ(client.ask(get_request("/v1/data%62ase")).status, 200);
  EXPECT_EQ(client.ask(get_request("/v1%2Fdatabase")).status, 200);
  EXPECT_EQ(client.ask(get_request("http://example.org/v1/database?anything=1")).status, 200);
  EXPECT_EQ(client.ask(get_request("/v1/database?anything=1")).status, 200);
}

TEST_F(HttpServerTest, NamesTheMethodsOfARoute) {
  start();
  for (const char* method : {"POST", "PUT", "DELETE", "PATCH", "OPTIONS", "TRACE"}) {
    for (const std::string& path :
         {std::string("/v1/database"), epoch_path("/hint"), epoch_path("/shards"),
          std::string("/health/live"), std::string("/health/ready")}) {
      const HttpResponse response = ask(get_request(path, "", method));
      EXPECT_EQ(response.status, 405) << method << " " << path;
      EXPECT_EQ(response.problem(), "method-not-allowed");
      EXPECT_EQ(response.header("allow"), "GET, HEAD");
    }
  }
  for (const char* method : {"GET", "PUT", "DELETE", "PATCH", "OPTIONS", "TRACE"}) {
    const HttpResponse response = ask(get_request(queries_path(), "", method));
    EXPECT_EQ(response.status, 405) << method;
    EXPECT_EQ(response.header("allow"), "POST");
  }
  expect_refused(post_request("/v1/database", "application/json", "{}"), 405, "method-not-allowed");
  expect_refused(post_request("/nowhere", "application/json", "{}"), 404, "unknown-route");
  expect_refused(get_request("/v1/database", "", "FROB"), 501, "unknown-method");
  expect_refused(get_request("/v1/database", "", "CONNECT"), 501, "unknown-method");
}

TEST_F(HttpServerTest, RefusesBrokenRequests) {
  start();
  for (const char* request :
       {"GET /\r\n\r\n", "GET / HTTP/1.1\r\n\r\n", "GET / HTTP/1.1\r\nHost: x\r\nbroken\r\n\r\n",
        "GET / HTTP/1.1\nHost: x\n\n", "nonsense\r\n\r\n",
        "POST / HTTP/1.1\r\nHost: x\r\nContent-Length: -1\r\n\r\n",
        "POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\nab",
        "GET /v1/database HTTP/1.1\r\nHost: x\r\nContent-Length: 3\r\n\r\nabc",
        "\x16\x03\x01\x02\x05"}) {
    expect_refused(request, 400, "malformed-request");
  }
  const HttpResponse twice = ask(get_request("/v1/database?a?b"));
  EXPECT_EQ(twice.status, 400);
  EXPECT_EQ(twice.problem(), "malformed-request");
  expect_refused("GET / HTTP/3.0\r\nHost: x\r\n\r\n", 505, "unsupported-version");
  expect_healthy();
}

TEST_F(HttpServerTest, SurvivesLongPathsAndHeaders) {
  start();
  EXPECT_EQ(ask(get_request("/" + std::string(7'990, 'a'))).problem(), "unknown-route");
  EXPECT_EQ(ask(get_request("/v1/epochs/" + std::string(7'900, 'a') + "/hint")).problem(),
            "unknown-epoch");
  EXPECT_EQ(ask(post_head("/v1/epochs/" + std::string(7'900, 'a') + "/queries",
                          "application/octet-stream", "5"))
                .problem(),
            "unknown-epoch");
  expect_refused(get_request("/" + std::string(8'100, 'a')), 414, "target-too-long");
  expect_refused(get_request("/" + std::string(1'000'000, 'a')), 414, "target-too-long");
  EXPECT_EQ(ask(get_request("/v1/database", "X: " + std::string(7'900, 'a') + "\r\n")).status, 200);
  expect_refused(get_request("/v1/database", "X: " + std::string(8'100, 'a') + "\r\n"), 431,
                 "header-too-large");
  std::string many;
  for (int i = 0; i < 200; ++i) many += "X: y\r\n";
  expect_refused(get_request("/v1/database", many), 431, "header-too-large");
  std::string endless;
  for (int i = 0; i < 20'000; ++i) endless += "X: " + std::string(80, 'y') + "\r\n";
  expect_refused(get_request("/v1/database", endless), 431, "header-too-large");
  expect_healthy();
}

TEST_F(HttpServerTest, AnswersPipelinedRequestsInOrder) {
  start();
  LoopbackClient client(url());
  client.send(get_request("/health/live") + query_request(1) + get_request("/nowhere") +
              query_request(2) + get_request("/v1/database", "", "HEAD") +
              get_request("/v1/database"));
  EXPECT_EQ(client.receive().status, 200);
  EXPECT_EQ(client.receive().body, expected_response(random_query(1)));
  EXPECT_EQ(client.receive().status, 404);
  EXPECT_EQ(client.receive().body, expected_response(random_query(2)));
  EXPECT_EQ(client.receive(true).status, 200);
  EXPECT_EQ(client.receive().body, database_.downloads->manifest_text);
}

TEST_F(HttpServerTest, NeverTakesTheBodyOfARefusedRequestForAnother) {
  start();
  const std::string hidden = get_request("/v1/database");
  for (const std::string& head :
       {post_head("/nowhere", "text/plain", std::to_string(hidden.size())),
        post_head("/v1/database", "text/plain", std::to_string(hidden.size())),
        post_head(queries_path(), "text/plain", std::to_string(hidden.size())),
        post_head(queries_path(), "application/octet-stream", std::to_string(hidden.size())),
        post_head(queries_path(), "application/json", "999999999")}) {
    LoopbackClient client(url());
    client.send(head + hidden + hidden);
    const HttpResponse response = client.receive();
    EXPECT_GE(response.status, 400) << head;
    EXPECT_EQ(response.header("connection"), "close");
    EXPECT_TRUE(client.is_closed()) << "a second response followed";
  }
  expect_healthy();
}

TEST_F(HttpServerTest, RefusesALargeBodyWhileTheClientIsStillSending) {
  start();
  LoopbackClient client(url());
  client.send(post_head(queries_path(), "application/octet-stream", "100000000"));
  const std::string part(100'000, 'x');
  bool taken = true;
  for (int i = 0; i < 50 && taken; ++i) taken = client.send(part);
  EXPECT_EQ(client.receive().problem(), "body-too-large");
}

TEST_F(HttpServerTest, PassesOverEmptyLinesBetweenRequests) {
  start();
  LoopbackClient client(url());
  EXPECT_EQ(client.ask("\r\n" + query_request(1) + "\r\n").body,
            expected_response(random_query(1)));
  EXPECT_EQ(client.ask("\r\n" + get_request("/health/live")).status, 200);
}

TEST_F(HttpServerTest, LimitsTheRequestsOfAConnection) {
  ServerOptions options = default_options();
  options.http.requests_per_connection_max = 3;
  start(options);
  LoopbackClient client(url());
  for (int i = 1; i <= 3; ++i) {
    const HttpResponse response = client.ask(get_request("/health/live"));
    EXPECT_EQ(response.status, 200);
    EXPECT_EQ(response.header("connection"), i == 3 ? "close" : "");
    EXPECT_EQ(response.header("keep-alive"), i == 3 ? "" : "timeout=5, max=3");
  }
  EXPECT_TRUE(client.is_closed());
}

TEST_F(HttpServerTest, ClosesWhenTheClientWantsIt) {
  start();
  for (const std::string& request : {get_request("/health/live", "Connection: close\r\n"),
                                     get_request("/health/live", "Connection: Close\r\n"),
                                     std::string("GET /health/live HTTP/1.0\r\n\r\n")}) {
    LoopbackClient client(url());
    const HttpResponse response = client.ask(request);
    EXPECT_EQ(response.status, 200);
    EXPECT_EQ(response.header("connection"), "close");
    EXPECT_TRUE(client.is_closed());
  }
}

TEST_F(HttpServerTest, AnswersAClientThatHasFinishedSending) {
  start();
  LoopbackClient client(url());
  client.send(get_request("/v1/database"));
  client.finish_sending();
  EXPECT_EQ(client.receive().body, database_.downloads->manifest_text);
  EXPECT_TRUE(client.is_closed());
}

// A client that has closed its side while its queries wait counts as gone.
TEST_F(HttpServerTest, DropsQueriesOfClientsThatLeave) {
  start();
  control_->hold();
  LoopbackClient running(url());
  running.send(query_request(1));
  control_->wait_for_batches(1);
  std::vector<std::unique_ptr<LoopbackClient>> clients;
  for (uint64_t seed = 2; seed < 6; ++seed) {
    clients.push_back(std::make_unique<LoopbackClient>(url()));
    clients.back()->send(query_request(seed));
    wait_for_queue(seed - 1);
  }
  clients[0]->close();
  clients[2]->close();
  while (metric("blindfuse_queries_total{outcome=\"abandoned\"}") < 2) std::this_thread::yield();
  control_->release();
  EXPECT_EQ(running.receive().body, expected_response(random_query(1)));
  EXPECT_EQ(clients[1]->receive().body, expected_response(random_query(3)));
  EXPECT_EQ(clients[3]->receive().body, expected_response(random_query(5)));
  EXPECT_EQ(control_->batches, (std::vector<size_t>{1, 2}));
}

// The engine ends the batch that it has begun with, and computes no other for this client.
TEST_F(HttpServerTest, DropsTheRestOfARequestWhoseClientLeaves) {
  start(default_options(), {.batch_max = 1, .queue_max = 8});
  control_->hold();
  LoopbackClient leaving(url());
  const std::string query = pack(random_query(1), kQueryBits);
  leaving.send(binary_request(query + query + query));
  control_->wait_for_batches(1);
  leaving.close();
  while (metric("blindfuse_queries_total{outcome=\"abandoned\"}") < 3) std::this_thread::yield();
  control_->release();
  expect_healthy();
  EXPECT_EQ(control_->batches, (std::vector<size_t>{1, 1}));
}

TEST_F(HttpServerTest, TellsThoseWhoWaitedTooLong) {
  ServerOptions options = default_options();
  options.api.answer_timeout = std::chrono::milliseconds(200);
  start(options);
  control_->hold();
  LoopbackClient running(url());
  running.send(query_request(1));
  control_->wait_for_batches(1);
  LoopbackClient waiting(url());
  waiting.send(query_request(2));
  const HttpResponse response = waiting.receive();
  EXPECT_EQ(response.status, 503);
  EXPECT_EQ(response.problem(), "timed-out");
  EXPECT_EQ(response.header("retry-after"), "1");
  EXPECT_EQ(waiting.ask(get_request("/health/live")).status, 200) << "the connection goes on";
  control_->release();
  EXPECT_EQ(running.receive().body, expected_response(random_query(1)))
      << "what the engine has is answered";
  EXPECT_EQ(control_->batches, std::vector<size_t>{1});
  EXPECT_EQ(metric("blindfuse_queries_total{outcome=\"timed_out\"}"), 1);
}

TEST_F(HttpServerTest, ClosesIdleAndSlowConnections) {
  ServerOptions options = default_options();
  options.http.timeouts.idle = std::chrono::milliseconds(200);
  options.http.timeouts.head = std::chrono::milliseconds(200);
  options.http.timeouts.body = std::chrono::milliseconds(200);
  start(options);
  LoopbackClient silent(url());
  LoopbackClient idle(url());
  EXPECT_EQ(idle.ask(get_request("/health/live")).status, 200);
  LoopbackClient slow_head(url());
  slow_head.send("GET /health/live HT");
  LoopbackClient slow_body(url());
  slow_body.send(
      post_head(queries_path(), "application/octet-stream", std::to_string(kQueryBytes)) + "abc");
  EXPECT_TRUE(silent.is_closed());
  EXPECT_TRUE(idle.is_closed());
  EXPECT_TRUE(slow_head.is_closed());
  const HttpResponse response = slow_body.receive();
  EXPECT_EQ(response.status, 408);
  EXPECT_EQ(response.problem(), "request-timeout");
  EXPECT_TRUE(slow_body.is_closed());
}

TEST_F(HttpServerTest, SlowAndSilentClientsHoldUpNobody) {
  ServerOptions options = default_options();
  options.http.threads = 2;
  start(options);
  std::vector<std::unique_ptr<LoopbackClient>> clients;
  // Ten times as many as there are threads: without a word, within a header, between two requests.
  for (int i = 0; i < 20; ++i) {
    clients.push_back(std::make_unique<LoopbackClient>(url()));
    if (i % 3 == 1) clients.back()->send("POST /v1/epochs/");
    if (i % 3 == 2) clients.back()->ask(get_request("/health/live"));
  }
  // And some in the middle of a body.
  const std::string query = pack(random_query(5), kQueryBits);
  LoopbackClient slow(url());
  slow.send(post_head(queries_path(), "application/octet-stream", std::to_string(kQueryBytes)) +
            query.substr(0, 100));
  for (int i = 0; i < 10; ++i) expect_healthy();
  slow.send(query.substr(100));
  EXPECT_EQ(slow.receive().body, expected_response(random_query(5)));
}

TEST_F(HttpServerTest, SurvivesClientsThatGoAway) {
  start();
  const std::string request = query_request(1);
  for (size_t size = 0; size <= request.size(); size += 13) {
    LoopbackClient client(url());
    client.send(request.substr(0, size));
  }
  control_->hold();
  for (int i = 0; i < 3; ++i) {
    LoopbackClient client(url());
    client.send(request);
    control_->wait_for_batches(1);
  }
  {
    LoopbackClient client(url());  // reads nothing of a response
    client.send(get_request(epoch_path("/hint")));
  }
  control_->release();
  expect_healthy();
}

TEST_F(HttpServerTest, GivesEachOfManyClientsItsOwnAnswers) {
  ServerOptions options = default_options();
  options.http.threads = 8;
  start(options, {.batch_max = 8, .queue_max = 64});
  std::vector<std::future<void>> clients;
  for (uint64_t client = 0; client < 32; ++client) {
    clients.push_back(std::async(std::launch::async, [&, client] {
      LoopbackClient connection(url());
      for (uint64_t i = 0; i < 20; ++i) {
        const uint64_t seed = client * 1000 + i;
        const HttpResponse response = connection.ask(query_request(seed));
        EXPECT_EQ(response.status, 200);
        EXPECT_EQ(response.body, expected_response(random_query(seed)));
      }
    }));
  }
  for (auto& client : clients) client.get();
  EXPECT_LT(control_->batches.size(), 640u) << "no two queries ever shared a batch";
}

TEST_F(HttpServerTest, MakesRoomForNewClients) {
  ServerOptions options = default_options();
  options.http.connections_max = 4;
  options.http.threads = 2;  // so that two connections at least wait, whatever the threads do
  start(options);
  std::vector<std::unique_ptr<LoopbackClient>> clients;
  for (int i = 0; i < 20; ++i) {
    clients.push_back(std::make_unique<LoopbackClient>(url()));
    EXPECT_EQ(clients.back()->ask(get_request("/health/live")).status, 200);
  }
  EXPECT_TRUE(clients.front()->is_closed());
  EXPECT_EQ(clients.back()->ask(get_request("/health/live")).status, 200);
}

// Nor do those keep their places who never end what they have begun to ask.
TEST_F(HttpServerTest, MakesRoomAmongHeadsThatDoNotEnd) {
  ServerOptions options = default_options();
  options.http.connections_max = 4;
  options.http.threads = 1;
  start(options);
  std::vector<std::unique_ptr<LoopbackClient>> clients;
  for (int i = 0; i < 20; ++i) {
    clients.push_back(std::make_unique<LoopbackClient>(url()));
    EXPECT_EQ(clients.back()->ask(get_request("/health/live")).status, 200);
    clients.back()->send("G");
    // The thread has read that byte by now.
    EXPECT_EQ(ask(get_request("/health/live")).status, 200);
  }
}

size_t open_descriptors() {
  size_t count = 0;
  for ([[maybe_unused]] const auto& entry : std::filesystem::directory_iterator("/proc/self/fd"))
    ++count;
  return count;
}

TEST_F(HttpServerTest, LeavesNoDescriptorsOpen) {
  const size_t before = open_descriptors();
  start();
  for (int i = 0; i < 100; ++i) {
    ask(get_request("/health/live"));
    ask(post_head("/nowhere", "text/plain", "10"));
  }
  server_.reset();
  EXPECT_EQ(open_descriptors(), before);
}

// An idle client makes room at once: none of them ends by itself.
TEST_F(HttpServerTest, OutlivesAWantOfDescriptors) {
  ServerOptions options = default_options();
  options.http.timeouts.idle = std::chrono::minutes(10);
  start(options);
  rlimit before{};
  getrlimit(RLIMIT_NOFILE, &before);
  std::vector<std::unique_ptr<LoopbackClient>> clients;
  for (int i = 0; i < 10; ++i) {
    clients.push_back(std::make_unique<LoopbackClient>(url()));
    EXPECT_EQ(clients.back()->ask(get_request("/health/live")).status, 200);
  }
  // The limit leaves one descriptor, whatever this process has inherited. The next client takes it,
  // and the server has none for its end of that connection.
  const int lowest_free = dup(0);
  close(lowest_free);
  const rlimit tight{static_cast<rlim_t>(lowest_free) + 1, before.rlim_max};
  setrlimit(RLIMIT_NOFILE, &tight);
  try {
    LoopbackClient last(url());
    EXPECT_EQ(last.ask(get_request("/health/live")).status, 200);
  } catch (const std::exception& error) {
    ADD_FAILURE() << error.what();
  }
  setrlimit(RLIMIT_NOFILE, &before);
  expect_healthy();
}

TEST_F(HttpServerTest, FinishesWhatHasBegunWhenItStops) {
  start();
  control_->hold();
  LoopbackClient running(url());
  running.send(query_request(1));
  control_->wait_for_batches(1);
  LoopbackClient waiting(url());
  waiting.send(query_request(2));
  wait_for_queue(1);
  LoopbackClient idle(url());
  EXPECT_EQ(idle.ask(get_request("/health/ready")).status, 200);
  const std::string query = pack(random_query(3), kQueryBits);
  LoopbackClient sending(url());
  sending.send(post_head(queries_path(), "application/octet-stream", std::to_string(kQueryBytes)) +
               query.substr(0, 50));

  const std::string old_url = url();
  auto stopped = std::async(std::launch::async, [&] { server_->stop(); });
  EXPECT_TRUE(idle.is_closed()) << "nothing is owed to a client that waits for nothing";
  sending.send(query.substr(50));
  wait_for_queue(2);
  control_->release();
  for (auto [client, seed] : {std::pair(&running, 1u), {&waiting, 2u}, {&sending, 3u}}) {
    const HttpResponse response = client->receive();
    EXPECT_EQ(response.status, 200);
    EXPECT_EQ(response.body, expected_response(random_query(seed)));
    EXPECT_TRUE(client->is_closed());
  }
  stopped.get();
  EXPECT_THROW(LoopbackClient{old_url}, std::runtime_error) << "nobody listens any more";
}

TEST_F(HttpServerTest, FinishesADownloadWhenItStops) {
  start();
  LoopbackClient client(url());
  client.send(get_request(epoch_path("/hint")));
  const HttpResponse response = client.receive();
  server_->stop();
  EXPECT_EQ(response.body, hints_of(database_, 0, kShards - 1));
}

TEST_F(HttpServerTest, StopsOverAndOver) {
  for (int i = 0; i < 20; ++i) {
    start();
    if (i % 2 == 0) expect_healthy();
    server_->stop();
    server_->stop();
    server_.reset();
  }
}

TEST_F(HttpServerTest, HoldsAnEpochNoLongerThanARequestNeedsIt) {
  start();
  const long owners = epoch_.use_count();
  for (int i = 0; i < 8; ++i) expect_healthy();
  ask(get_request(epoch_path("/hint")));
  ask(get_request("/v1/database"));
  while (epoch_.use_count() != owners) std::this_thread::yield();
}

TEST_F(HttpServerTest, RefusesAPortInUse) {
  start();
  EXPECT_THROW(http::ListeningSocket(http::parse_listen_address(url().substr(7))), InputError);
  expect_healthy();
}

// Two that take one free port at the same time: one of them serves, the other is told.
TEST_F(HttpServerTest, RefusesAPortThatAnotherTookMeanwhile) {
  const http::ListenAddress address = http::ListeningSocket({}).address();
  http::ListeningSocket one(address);
  http::ListeningSocket other(address);
  one.listen();
  EXPECT_THROW(other.listen(), InputError);
}

TEST_F(HttpServerTest, RefusesClientsUntilItListens) {
  const http::ListeningSocket socket({});
  EXPECT_THROW(LoopbackClient("http://" + http::format_listen_address(socket.address())),
               std::runtime_error);
}

TEST_F(HttpServerTest, RestartsOnItsPort) {
  start();
  const http::ListenAddress address = http::parse_listen_address(url().substr(7));
  expect_healthy();
  start(default_options(), {}, address);
  expect_healthy();
}

TEST_F(HttpServerTest, ListensOnIpv6) {
  try {
    start(default_options(), {}, {"::1", 0});
  } catch (const InputError& error) {
    GTEST_SKIP() << "this machine has no IPv6: " << error.what();
  }
  EXPECT_EQ(url().substr(0, 13), "http://[::1]:");
  expect_healthy();
}

TEST_F(HttpServerTest, ChecksItsOptions) {
  ServerOptions options = default_options();
  options.api.queries_per_request_max = 9;
  EXPECT_THROW(start(options, {.batch_max = 4, .queue_max = 8}), InputError);
  options.api.queries_per_request_max = 0;
  EXPECT_THROW(start(options), InputError);
  options = default_options();
  options.http.threads = 0;
  EXPECT_THROW(start(options), InputError);
}

}  // namespace
}  // namespace blindfuse::server_testing
