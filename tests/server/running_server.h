// A server on a free loopback port over the tiny database, for tests to talk to.
#pragma once

#include <gtest/gtest.h>

#include <chrono>
#include <deque>
#include <memory>
#include <optional>
#include <sstream>
#include <stdexcept>
#include <string>
#include <thread>

#include "host/server/service.h"
#include "src/base/base64.h"
#include "tests/publish/builder_testing.h"
#include "tests/server/loopback_client.h"
#include "tests/server/tiny_database.h"

namespace blindfuse::server_testing {

// Much longer than any of this takes: a test that waits that long has failed.
inline constexpr auto kLong = std::chrono::seconds(60);

// The keys of "tester" and "other", whom RunningServer::with_keys() admits.
inline constexpr char kKey[] = "Authorization: Bearer key-of-a-test\r\n";
inline constexpr char kOtherKey[] = "Authorization: Bearer another\r\n";

class RunningServer : public ::testing::Test {
 protected:
  using Clients = std::deque<LoopbackClient>;

  explicit RunningServer(LoadedDatabase database = tiny_database())
      : database_(std::move(database)) {}
  // An engine that a failed test holds would keep the server from stopping.
  ~RunningServer() override { control_->release(); }

  static ServerOptions default_options() {
    ServerOptions options;
    options.http.threads = 4;
    options.api.queries_per_request_max = 3;
    return options;
  }
  ServerOptions with_keys(ServerOptions options = default_options()) {
    std::ofstream(folder_ / "keys") << api_key_line("tester", "key-of-a-test") << "\n"
                                    << api_key_line("other", "another") << "\n";
    options.api.api_keys = keys_ = std::make_shared<ApiKeys>(folder_ / "keys");
    return options;
  }

  void start(const ServerOptions& options = default_options(),
             const BatchLimits& limits = {.batch_max = 4, .queue_max = 8},
             const http::ListenAddress& address = {},
             std::shared_ptr<const http::TlsCertificate> tls = nullptr) {
    server_.reset();
    epochs_.reset();
    epoch_.reset();
    metrics_ = std::make_unique<ServerMetrics>();
    epoch_ = make_epoch(limits);
    epochs_ = std::make_unique<ServedEpochs>(epoch_);
    http::ListeningSocket socket(address);
    if (send_buffer_bytes_) {
      ASSERT_EQ(setsockopt(socket.fd(), SOL_SOCKET, SO_SNDBUF, &*send_buffer_bytes_, sizeof(int)),
                0);
    }
    server_ = std::make_unique<DatabaseServer>(*epochs_, *metrics_, std::move(socket), options,
                                               std::move(tls));
  }
  virtual std::shared_ptr<const ServingEpoch> make_epoch(const BatchLimits& limits) {
    return tiny_epoch(control_, limits, metrics_.get());
  }
  // Another epoch, next to the one before for an hour.
  void serve_next(LoadedDatabase database) {
    epochs_->replace(std::make_shared<const ServingEpoch>(std::move(database), BatchLimits{}),
                     ServedEpochs::Clock::now() + std::chrono::hours(1));
  }

  std::string metrics_text() { return metrics_->text(*epochs_); }
  // The value of a metric, by its name with its labels; -1 when there is none.
  double metric(const std::string& name) {
    std::istringstream lines(metrics_text());
    for (std::string line; std::getline(lines, line);) {
      if (line.starts_with(name + " ")) return std::stod(line.substr(name.size() + 1));
    }
    return -1;
  }

  const std::string& url() const { return server_->url(); }
  // A request over a connection of its own.
  HttpResponse ask(const std::string& request) { return LoopbackClient(url()).ask(request); }

  std::string epoch_path(const std::string& rest) const {
    return "/v1/epochs/" + database_.epoch + rest;
  }
  std::string queries_path() const { return epoch_path("/queries"); }
  static std::string old_path(const std::string& rest) { return "/v1/epochs/" + kOldEpoch + rest; }

  std::string binary_request(const std::string& queries) const {
    return post_request(queries_path(), "application/octet-stream", queries);
  }
  std::string json_request(const std::string& body) const {
    return post_request(queries_path(), "application/json", body);
  }

  std::string query_request(uint64_t seed) const { return binary_request(queries(1, seed)); }
  // A client whose query the engine holds until it is released.
  LoopbackClient& send_held(Clients& clients, uint64_t seed) {
    control_->hold();
    LoopbackClient& client = clients.emplace_back(url());
    const size_t begun = control_->batches.size();
    client.send(query_request(seed));
    control_->wait_for_batches(begun + 1);
    return client;
  }
  // A client whose query waits as the last of `count`.
  LoopbackClient& send_waiting(Clients& clients, uint64_t seed, size_t count) {
    LoopbackClient& client = clients.emplace_back(url());
    client.send(query_request(seed));
    wait_for_queue(count);
    return client;
  }

  template <typename Condition>
  void wait_for(Condition condition) const {
    const auto give_up = std::chrono::steady_clock::now() + kLong;
    while (!condition()) {
      if (std::chrono::steady_clock::now() > give_up) {
        control_->release();  // otherwise the server would not stop
        throw std::runtime_error("what the test waits for never comes");
      }
      std::this_thread::sleep_for(std::chrono::milliseconds(1));
    }
  }
  void wait_for_queue(size_t count) const {
    wait_for([&] { return epoch_->scheduler().waiting_count() == count; });
  }
  void wait_for_metric(const std::string& name, double least) {
    wait_for([&] { return metric(name) >= least; });
  }

  // Its answer is right.
  static void expect_answer(LoopbackClient& client, uint64_t seed) {
    const HttpResponse response = client.receive();
    EXPECT_EQ(response.status, 200);
    EXPECT_EQ(response.body, responses(1, seed));
  }
  // The server is well: the next client gets the right answer.
  void expect_healthy() {
    LoopbackClient client(url());
    client.send(query_request(4711));
    expect_answer(client, 4711);
  }
  static void expect_problem(const HttpResponse& response, int status, const std::string& problem) {
    EXPECT_EQ(response.status, status);
    EXPECT_EQ(response.problem(), problem);
  }

  // The request is refused with this status and type of problem, and the connection closed in
  // peace.
  void expect_refused(const std::string& request, int status, const std::string& problem) {
    SCOPED_TRACE(request.substr(0, 200));
    LoopbackClient client(url());
    const HttpResponse response = client.ask(request);
    expect_problem(response, status, problem);
    EXPECT_EQ(response.header("connection"), "close");
    EXPECT_TRUE(client.is_closed());
  }

  const LoadedDatabase database_;
  const builder_testing::TemporaryFolder folder_;
  std::shared_ptr<ApiKeys> keys_;
  // What the kernel takes of a response off the server's hands; unless set, all of it.
  std::optional<int> send_buffer_bytes_;
  const std::shared_ptr<TestEngine::Control> control_ = std::make_shared<TestEngine::Control>();
  std::unique_ptr<ServerMetrics> metrics_;
  std::shared_ptr<const ServingEpoch> epoch_;
  std::unique_ptr<ServedEpochs> epochs_;
  std::unique_ptr<DatabaseServer> server_;
};

inline std::string base64_of(const std::string& bytes) {
  return encode_base64({reinterpret_cast<const uint8_t*>(bytes.data()), bytes.size()});
}

}  // namespace blindfuse::server_testing
