// A server on a free loopback port over the tiny database, for tests to talk to.
#pragma once

#include <gtest/gtest.h>

#include <chrono>
#include <memory>
#include <sstream>
#include <stdexcept>
#include <string>
#include <thread>

#include "host/server/database_server.h"
#include "src/base/base64.h"
#include "tests/server/loopback_client.h"
#include "tests/server/tiny_database.h"

namespace blindfuse::server_testing {

class RunningServer : public ::testing::Test {
 protected:
  // An engine that a failed test holds would keep the server from stopping.
  ~RunningServer() override { control_->release(); }

  static ServerOptions default_options() {
    ServerOptions options;
    options.http.threads = 4;
    options.api.queries_per_request_max = 3;
    return options;
  }

  void start(const ServerOptions& options = default_options(),
             const BatchLimits& limits = {.batch_max = 4, .queue_max = 8},
             const http::ListenAddress& address = {},
             std::shared_ptr<http::TlsCertificate> tls = nullptr) {
    server_.reset();
    epochs_.reset();
    epoch_.reset();
    metrics_ = std::make_unique<ServerMetrics>();
    epoch_ = tiny_epoch(control_, limits, metrics_.get());
    epochs_ = std::make_unique<ServedEpochs>(epoch_);
    server_ = std::make_unique<DatabaseServer>(*epochs_, *metrics_, http::ListeningSocket(address),
                                               options, std::move(tls));
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

  std::string binary_request(const std::string& queries) const {
    return post_request(queries_path(), "application/octet-stream", queries);
  }
  std::string json_request(const std::string& body) const {
    return post_request(queries_path(), "application/json", body);
  }

  void wait_for_queue(size_t count) const {
    const auto give_up = std::chrono::steady_clock::now() + std::chrono::minutes(1);
    while (epoch_->scheduler().waiting_count() != count) {
      if (std::chrono::steady_clock::now() > give_up) {
        control_->release();  // otherwise the server would not stop
        throw std::runtime_error("there are never " + std::to_string(count) + " queries waiting");
      }
      std::this_thread::yield();
    }
  }

  // The server is well: the next client gets the right answer.
  void expect_healthy() {
    const Numbers query = random_query(4711);
    const HttpResponse response = ask(binary_request(pack(query, kQueryBits)));
    EXPECT_EQ(response.status, 200);
    EXPECT_EQ(response.body, expected_response(query));
  }

  // The request is refused with this status and type of problem, and the connection closed in
  // peace.
  void expect_refused(const std::string& request, int status, const std::string& problem) {
    SCOPED_TRACE(request.substr(0, 200));
    LoopbackClient client(url());
    client.send(request);
    const HttpResponse response = client.receive();
    EXPECT_EQ(response.status, status);
    EXPECT_EQ(response.problem(), problem);
    EXPECT_EQ(response.header("connection"), "close");
    EXPECT_TRUE(client.is_closed());
  }

  const LoadedDatabase database_ = tiny_database();
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
