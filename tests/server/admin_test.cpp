// The admin listener: metrics, health, the epochs in memory, the log's level, draining.
#include "host/server/routes/admin.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "src/program/log.h"
#include "tests/server/running_server.h"

namespace blindfuse::server_testing {
namespace {

using nlohmann::json;
using ::testing::HasSubstr;

class AdminListener : public RunningServer {
 protected:
  void start_admin(const http::ListenAddress& address = {}) {
    admin_.reset();
    start();
    http::ListeningSocket socket(address);
    const AdminAccess access = access_at(socket);
    admin_ = std::make_unique<AdminServer>(*epochs_, *metrics_, server_->readiness(),
                                           std::move(socket), access);
  }
  void TearDown() override {
    admin_.reset();
    set_log_level("info");
  }

  HttpResponse ask_admin(const std::string& request) {
    return LoopbackClient(admin_->url()).ask(request);
  }
  json admin_json(const std::string& path) {
    const HttpResponse response = ask_admin(get_request(path));
    EXPECT_EQ(response.status, 200);
    EXPECT_EQ(response.header("content-type"), "application/json");
    EXPECT_EQ(response.header("cache-control"), "no-store");
    return json::parse(response.body);
  }
  static std::string put(const std::string& path, const std::string& body,
                         const std::string& headers = "") {
    return "PUT " + path +
           " HTTP/1.1\r\nHost: localhost\r\nContent-Length: " + std::to_string(body.size()) +
           "\r\n" + headers + "\r\n" + body;
  }

  std::unique_ptr<AdminServer> admin_;
};

TEST_F(AdminListener, ShowsMetrics) {
  start_admin();
  ask(get_request("/v1/database"));
  const HttpResponse response = ask_admin(get_request("/metrics"));
  EXPECT_EQ(response.status, 200);
  EXPECT_EQ(response.header("content-type"), kMetricsContentType);
  EXPECT_EQ(response.header("cache-control"), "no-store");
  EXPECT_THAT(response.body, HasSubstr("blindfuse_http_requests_total{route=\"database\","
                                       "status=\"200\"} 1\n"));
  // Its own requests and connections are not among them.
  LoopbackClient client(admin_->url());
  client.send(get_request("/metrics", "", "HEAD"));
  EXPECT_EQ(client.receive(true).status, 200);
  EXPECT_THAT(ask_admin(get_request("/metrics")).body, Not(HasSubstr("route=\"metrics\"")));
  EXPECT_EQ(ask(get_request("/metrics")).status, 404) << "they are the operator's alone";
}

TEST_F(AdminListener, AnswersHealthChecksAsThePublicListenerDoes) {
  start_admin();
  for (const char* path : {"/health/live", "/health/ready"}) {
    EXPECT_EQ(ask_admin(get_request(path)).body, "{\"status\":\"ok\"}\n") << path;
  }
  server_->readiness().set_stopping();
  expect_problem(ask_admin(get_request("/health/ready")), 503, "stopping");
  EXPECT_EQ(ask_admin(get_request("/health/live")).status, 200);
}

TEST_F(AdminListener, ShowsTheEpochsInMemory) {
  start_admin();
  const Layout layout = epoch_->layout();
  EXPECT_EQ(admin_json("/epochs"), (json{{"epochs",
                                          {{{"epoch", database_.epoch},
                                            {"state", "current"},
                                            {"keys", 200},
                                            {"matrix_bytes", layout.matrix_bytes()},
                                            {"hint_bytes", layout.hint_bytes()},
                                            {"packing_table_bytes", 0},
                                            {"queries_waiting", 0}}}}}));
  LoadedDatabase next = tiny_database();
  next.epoch = EpochId(64, 'e');
  serve_next(std::move(next));
  json epochs = admin_json("/epochs").at("epochs");
  ASSERT_EQ(epochs.size(), 2u);
  EXPECT_EQ(epochs[0].at("epoch"), std::string(64, 'e'));
  EXPECT_EQ(epochs[0].at("state"), "current");
  EXPECT_EQ(epochs[1].at("epoch"), database_.epoch);
  EXPECT_EQ(epochs[1].at("state"), "grace");
  EXPECT_LE(epochs[1].at("grace_seconds_left"), 3600);
  EXPECT_GT(epochs[1].at("grace_seconds_left"), 3000);
  // The fixture holds the old one, as a request that has begun does.
  EXPECT_EQ(epochs_->retire(ServedEpochs::Clock::time_point::max()), 0u);
  epochs = admin_json("/epochs").at("epochs");
  ASSERT_EQ(epochs.size(), 2u);
  EXPECT_EQ(epochs[1].at("epoch"), database_.epoch);
  EXPECT_EQ(epochs[1].at("state"), "leaving");
  EXPECT_EQ(metric("blindfuse_epochs"), 2) << "it still holds memory";
  epoch_.reset();
  EXPECT_EQ(epochs_->retire(ServedEpochs::Clock::time_point::max()), 1u);
  EXPECT_EQ(admin_json("/epochs").at("epochs").size(), 1u);
}

TEST_F(AdminListener, ShowsAndSetsTheLogLevel) {
  start_admin();
  set_log_level("warning");
  EXPECT_EQ(admin_json("/log-level"), (json{{"level", "warning"}}));
  for (const std::string& level : log_level_names()) {
    const HttpResponse response = ask_admin(put("/log-level", "{\"level\": \"" + level + "\"}"));
    EXPECT_EQ(response.status, 200);
    EXPECT_EQ(json::parse(response.body), (json{{"level", level}}));
    EXPECT_EQ(log_level(), level);
  }
  EXPECT_EQ(log_level(), "off");
  for (const char* body : {"", "off", "{}", "{\"level\":\"loud\"}", "{\"level\":1}", "[\"info\"]",
                           "{\"level\":\"info\",\"more\":1}", "{\"level\":\"info\"", "\xff"}) {
    SCOPED_TRACE(body);
    const HttpResponse response = ask_admin(put("/log-level", body));
    expect_problem(response, 400, "malformed-request");
    EXPECT_THAT(response.detail(), HasSubstr("{\"level\":\"info\"}"));
  }
  EXPECT_EQ(ask_admin(put("/log-level", std::string(1025, ' '))).status, 413);
  EXPECT_EQ(log_level(), "off");
}

TEST_F(AdminListener, DrainsAndStopsDraining) {
  start_admin();
  EXPECT_EQ(admin_json("/drain"), (json{{"draining", false}}));
  LoopbackClient client(url());
  EXPECT_EQ(client.ask(get_request("/health/ready")).status, 200);
  EXPECT_EQ(ask_admin(put("/drain", "")).body, "{\"draining\":true}\n");
  EXPECT_EQ(admin_json("/drain"), (json{{"draining", true}}));
  EXPECT_EQ(ask_admin(get_request("/health/ready")).status, 503);
  EXPECT_EQ(ask(get_request("/health/live")).status, 200);
  // Clients are answered, and then let go of.
  HttpResponse response = client.ask(get_request("/health/ready"));
  expect_problem(response, 503, "stopping");
  EXPECT_THAT(response.detail(), HasSubstr("draining"));
  EXPECT_EQ(response.header("connection"), "close");
  EXPECT_TRUE(client.is_closed());
  expect_healthy();
  response = ask_admin(get_request("/drain", "", "DELETE"));
  EXPECT_EQ(response.body, "{\"draining\":false}\n");
  LoopbackClient next(url());
  for (int i = 0; i < 2; ++i) EXPECT_EQ(next.ask(get_request("/health/ready")).status, 200);
}

TEST_F(AdminListener, SaysWhatItHas) {
  start_admin();
  for (const char* path : {"/", "/v1/database", "/metrics/", "/openapi.json"}) {
    const HttpResponse response = ask_admin(get_request(path));
    expect_problem(response, 404, "unknown-route");
    EXPECT_THAT(response.detail(), HasSubstr("/metrics, /health/live, /health/ready, /epochs"));
  }
  const HttpResponse response = ask_admin(get_request("/drain", "", "POST"));
  EXPECT_EQ(response.status, 405);
  EXPECT_EQ(response.header("allow"), "GET, HEAD, PUT, DELETE");
  EXPECT_EQ(ask_admin(get_request("/metrics", "", "DELETE")).status, 405);
  EXPECT_EQ(ask_admin("nonsense\r\n\r\n").status, 400);
}

// A page that the operator has open in a browser could otherwise take the service out.
TEST_F(AdminListener, LetsNoWebPageChangeAnything) {
  start_admin();
  const std::string origin = "Origin: https://page.example\r\n";
  for (const std::string& request :
       {put("/drain", "", origin), put("/log-level", "{\"level\":\"off\"}", origin),
        get_request("/drain", origin, "DELETE")}) {
    expect_problem(ask_admin(request), 403, "forbidden");
  }
  EXPECT_FALSE(server_->readiness().is_draining());
  EXPECT_EQ(log_level(), "info");
}

// A page whose own name leads to this machine is of the listener's origin for its browser.
TEST_F(AdminListener, IsAskedByNoNameThatOthersGive) {
  start_admin();
  const auto asked_as = [&](const std::string& host) {
    return ask_admin("GET /metrics HTTP/1.1\r\nHost: " + host + "\r\n\r\n").status;
  };
  for (const char* host :
       {"localhost", "LocalHost:9108", "127.0.0.1", "127.0.0.1:9108", "[::1]", "[::1]:9108", ""}) {
    EXPECT_EQ(asked_as(host), 200) << host;
  }
  for (const char* host : {"page.example", "page.example:9108", "localhost.page.example",
                           "127.0.0.1.page.example", "[page.example]", "["}) {
    EXPECT_EQ(asked_as(host), 403) << host;
  }
  EXPECT_EQ(ask_admin("GET http://page.example/metrics HTTP/1.1\r\nHost: localhost\r\n\r\n").status,
            403)
      << "the host of the target counts";
  EXPECT_EQ(ask_admin("GET http://localhost/metrics HTTP/1.1\r\nHost: page.example\r\n\r\n").status,
            200);
  start_admin({.host = "", .unix_path = (folder_ / "admin").string()});
  EXPECT_EQ(asked_as("page.example"), 200) << "no page gets at a UNIX socket";
}

TEST_F(AdminListener, HasMetricsAndHealthAloneWhereOtherMachinesReachIt) {
  start_admin({.host = "0.0.0.0"});
  for (const char* path : {"/metrics", "/health/live", "/health/ready"}) {
    EXPECT_EQ(ask_admin(get_request(path)).status, 200) << path;
  }
  for (const std::string& request :
       {get_request("/epochs"), get_request("/log-level"), put("/drain", "")}) {
    const HttpResponse response = ask_admin(request);
    expect_problem(response, 403, "forbidden");
    EXPECT_THAT(response.detail(), HasSubstr("--admin-listen a loopback address or a UNIX socket"));
  }
  EXPECT_FALSE(server_->readiness().is_draining());
}

TEST_F(AdminListener, HasEverythingOnALocalAddress) {
  for (const http::ListenAddress& address :
       {http::ListenAddress{.host = "127.0.0.1"}, http::ListenAddress{.host = "localhost"},
        http::ListenAddress{.host = "", .unix_path = (folder_ / "admin").string()}}) {
    SCOPED_TRACE(http::format_listen_address(address));
    start_admin(address);
    EXPECT_EQ(ask_admin(put("/drain", "")).status, 200);
    EXPECT_TRUE(server_->readiness().is_draining());
  }
}

}  // namespace
}  // namespace blindfuse::server_testing
