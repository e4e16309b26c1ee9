// The server as a whole: many clients, broken clients, and stopping.
#include "host/server/service.h"

#include <gtest/gtest.h>
#include <sys/resource.h>
#include <unistd.h>

#include <filesystem>
#include <future>

#include "tests/server/running_server.h"

namespace blindfuse::server_testing {
namespace {

using HttpServerTest = RunningServer;

constexpr char kAbandoned[] = "blindfuse_queries_total{outcome=\"abandoned\"}";

TEST_F(HttpServerTest, TellsHealth) {
  start();
  for (const char* path : {"/health/live", "/health/ready"}) {
    const HttpResponse response = ask(get_request(path));
    EXPECT_EQ(response.status, 200);
    EXPECT_EQ(response.body, "{\"status\":\"ok\"}\n");
    EXPECT_EQ(response.header("content-type"), "application/json");
  }
}

TEST_F(HttpServerTest, ClosesWhenTheClientWantsIt) {
  start();
  for (const std::string& request : {get_request("/health/live", "Connection: Close\r\n"),
                                     std::string("GET /health/live HTTP/1.0\r\n\r\n")}) {
    LoopbackClient client(url());
    EXPECT_EQ(client.ask(request).header("connection"), "close");
    EXPECT_TRUE(client.is_closed());
  }
}

// A percent sign that begins no encoding stays as it is, and so does a plus sign.
TEST_F(HttpServerTest, KnowsItsRoutes) {
  start();
  const auto expect_none = [&](const std::string& path) {
    SCOPED_TRACE(path);
    expect_problem(ask(get_request(path)), 404, "unknown-route");
  };
  std::istringstream paths(
      "/ /v1 /v1/database/ /v1/databases /v1/epochs /v1/epochs/ /v1/epochs//hint "
      "/metrics /openapi /v1/epochs/../../etc/passwd /%2e%2e/ /..%2f..%2fetc%2fpasswd "
      "/./v1/database /v1/database/.. /v1/database%00 //v1/database /manifest.json "
      "/.lock /retired.txt /%ff%fe /% /v1/data%6xase /v1/data% /v1/data%6 /v1/data+base");
  for (std::string path; paths >> path;) expect_none(path);
  for (const char* rest : {"", "/", "/x/hint", "/hint/", "/../hint"}) expect_none(epoch_path(rest));
  // Paths of files, and bytes that JSON cannot hold.
  for (const char* epoch : {"..%2f..%2fetc%2fpasswd", "%2e%2e", "..%5c..%5cboot.ini", "%00", "%ff",
                            "\xc0\xae\xc0\xae"}) {
    SCOPED_TRACE(epoch);
    const HttpResponse response = ask(get_request("/v1/epochs/" + std::string(epoch) + "/hint"));
    EXPECT_TRUE(response.status == 404 || response.status == 400) << response.status;
    EXPECT_FALSE(response.problem().empty());
  }
  for (const char* target : {"/v1/data%62ase", "/v1%2Fdatabase", "/v1/database?anything=1",
                             "http://example.org/v1/database?anything=1"}) {
    EXPECT_EQ(ask(get_request(target)).status, 200) << target;
  }
}

// OpenApi.NamesTheRoutesOfTheServer has every method of every route.
TEST_F(HttpServerTest, NamesTheMethodsOfARoute) {
  start();
  const HttpResponse response = ask(get_request(queries_path(), "", "TRACE"));
  expect_problem(response, 405, "method-not-allowed");
  EXPECT_EQ(response.header("allow"), "POST");
  expect_refused(post_request("/v1/database", "application/json", "{}"), 405, "method-not-allowed");
  expect_refused(post_request("/nowhere", "application/json", "{}"), 404, "unknown-route");
  expect_refused(get_request("/v1/database", "", "FROB"), 501, "unknown-method");
  expect_refused(get_request("/v1/database", "", "CONNECT"), 501, "unknown-method");
}

// request_head_test.cpp has all that a head can have wrong.
TEST_F(HttpServerTest, RefusesBrokenRequests) {
  start();
  for (const std::string request :
       {"nonsense\r\n\r\n",
        "POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 4\r\nContent-Length: 5\r\n\r\nabcd",
        "GET /v1/database HTTP/1.1\r\nHost: x\r\nContent-Length: 4\r\n\r\nabcd",
        "\x16\x03\x01\x02\x05"}) {
    expect_refused(request + get_request("/v1/database"), 400, "malformed-request");
  }
  expect_problem(ask(get_request("/v1/database?a?b")), 400, "malformed-request");
  expect_refused("GET / HTTP/3.0\r\nHost: x\r\n\r\n", 505, "unsupported-version");
  expect_healthy();
}

TEST_F(HttpServerTest, SurvivesLongPathsAndHeaders) {
  start();
  EXPECT_EQ(ask(get_request("/v1/epochs/" + std::string(7'900, 'a') + "/hint")).problem(),
            "unknown-epoch");
  expect_refused(get_request("/" + std::string(1'000'000, 'a')), 414, "target-too-long");
  std::string endless;
  for (int i = 0; i < 20'000; ++i) endless += "X: " + std::string(80, 'y') + "\r\n";
  expect_refused(get_request("/v1/database", endless), 431, "header-too-large");
  expect_healthy();
}

TEST_F(HttpServerTest, AnswersPipelinedQueriesInOrder) {
  start();
  constexpr uint64_t kMany = 300;
  LoopbackClient client(url());
  std::string requests;
  for (uint64_t seed = 0; seed < kMany; ++seed) requests += query_request(seed);
  client.send(requests);
  expect_healthy();
  for (uint64_t seed = 0; seed < kMany; ++seed) expect_answer(client, seed);
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

// The engine ends the batch that it has begun with, and computes no other for this client.
TEST_F(HttpServerTest, DropsTheRestOfARequestWhoseClientLeaves) {
  start(default_options(), {.batch_max = 1, .queue_max = 8});
  control_->hold();
  LoopbackClient leaving(url());
  leaving.send(binary_request(queries(3)));
  control_->wait_for_batches(1);
  leaving.close();
  wait_for_metric(kAbandoned, 3);
  control_->release();
  expect_healthy();
  EXPECT_EQ(control_->batches, (std::vector<size_t>{1, 1}));
}

TEST_F(HttpServerTest, TellsThoseWhoWaitedTooLong) {
  ServerOptions options = default_options();
  options.api.answer_timeout = std::chrono::milliseconds(200);
  start(options);
  Clients clients;
  LoopbackClient& running = send_held(clients, 1);
  LoopbackClient waiting(url());
  const HttpResponse response = waiting.ask(query_request(2));
  expect_problem(response, 503, "timed-out");
  EXPECT_EQ(response.header("retry-after"), "1");
  EXPECT_EQ(waiting.ask(get_request("/health/live")).status, 200) << "the connection goes on";
  control_->release();
  expect_answer(running, 1);
  EXPECT_EQ(control_->batches, std::vector<size_t>{1});
  EXPECT_EQ(metric("blindfuse_queries_total{outcome=\"timed_out\"}"), 1);
}

// deadlines_test.cpp has those that are slow.
TEST_F(HttpServerTest, ClosesSilentConnections) {
  ServerOptions options = default_options();
  options.http.timeouts.idle = std::chrono::milliseconds(200);
  options.http.timeouts.head = std::chrono::milliseconds(200);
  start(options);
  LoopbackClient silent(url());
  LoopbackClient idle(url());
  EXPECT_EQ(idle.ask(get_request("/health/live")).status, 200);
  EXPECT_TRUE(silent.is_closed());
  EXPECT_TRUE(idle.is_closed());
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
        EXPECT_EQ(response.body, responses(1, seed));
      }
    }));
  }
  for (auto& client : clients) client.get();
  EXPECT_LT(control_->batches.size(), 640u) << "no two queries ever shared a batch";
}

// None keep their places who never end what they have begun to ask.
TEST_F(HttpServerTest, MakesRoomAmongHeadsThatDoNotEnd) {
  ServerOptions options = default_options();
  options.http.connections_max = 4;
  options.http.threads = 1;
  start(options);
  Clients clients;
  for (int i = 0; i < 20; ++i) {
    EXPECT_EQ(clients.emplace_back(url()).ask(get_request("/health/live")).status, 200);
    clients.back().send("G");
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
  Clients clients;
  for (int i = 0; i < 10; ++i) {
    EXPECT_EQ(clients.emplace_back(url()).ask(get_request("/health/live")).status, 200);
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
  Clients clients;
  send_held(clients, 1);
  send_waiting(clients, 2, 1);
  LoopbackClient idle(url());
  EXPECT_EQ(idle.ask(get_request("/health/ready")).status, 200);
  LoopbackClient& sending = clients.emplace_back(url());
  const std::string request = query_request(3);
  sending.send(request.substr(0, request.size() - 50));

  const std::string old_url = url();
  auto stopped = std::async(std::launch::async, [&] { server_->stop(); });
  EXPECT_TRUE(idle.is_closed()) << "nothing is owed to a client that waits for nothing";
  sending.send(request.substr(request.size() - 50));
  wait_for_queue(2);
  control_->release();
  for (uint64_t seed = 1; LoopbackClient & client : clients) {
    expect_answer(client, seed++);
    EXPECT_TRUE(client.is_closed());
  }
  stopped.get();
  server_->stop();  // again
  EXPECT_THROW(LoopbackClient{old_url}, std::runtime_error) << "nobody listens any more";
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
