// What tests of clients that mean no good have in common.
#pragma once

#include <gtest/gtest.h>
#include <sys/socket.h>

#include <chrono>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "tests/server/running_server.h"

namespace blindfuse::server_testing {

// Much longer than any of this takes: a test that waits that long has failed.
inline constexpr auto kLong = std::chrono::seconds(60);

// Leaves with a reset instead of an end.
class RudeClient final : public LoopbackClient {
 public:
  using LoopbackClient::LoopbackClient;
  void reset() {
    const linger at_once{1, 0};
    setsockopt(fd(), SOL_SOCKET, SO_LINGER, &at_once, sizeof at_once);
    close();
  }
};

class Attacks : public RunningServer {
 protected:
  using Clients = std::vector<std::unique_ptr<LoopbackClient>>;

  static ServerOptions few_threads() {
    ServerOptions options = default_options();
    options.http.threads = 2;
    return options;
  }
  std::string query_request(uint64_t seed) const {
    return binary_request(pack(random_query(seed), kQueryBits));
  }
  // Its answer is right.
  static void expect_answer(LoopbackClient& client, uint64_t seed) {
    const HttpResponse response = client.receive();
    EXPECT_EQ(response.status, 200);
    EXPECT_EQ(response.body, expected_response(random_query(seed)));
  }
  void expect_good_clients_served() {
    LoopbackClient client(url());
    for (uint64_t seed = 0; seed < 5; ++seed) {
      client.send(query_request(seed));
      expect_answer(client, seed);
    }
    expect_healthy();
  }
  template <typename Condition>
  static void wait_for(Condition condition) {
    const auto give_up = std::chrono::steady_clock::now() + kLong;
    while (!condition()) {
      ASSERT_LT(std::chrono::steady_clock::now(), give_up);
      std::this_thread::sleep_for(std::chrono::milliseconds(2));
    }
  }
  // The kernel takes a response of any length off the server's hands; this leaves it room for a few
  // KB.
  void start_with_small_buffers(const ServerOptions& options,
                                std::shared_ptr<const http::TlsCertificate> tls = nullptr) {
    start(options);
    server_.reset();
    http::ListeningSocket socket({});
    const int bytes = 4'096;
    ASSERT_EQ(setsockopt(socket.fd(), SOL_SOCKET, SO_SNDBUF, &bytes, sizeof bytes), 0);
    server_ = std::make_unique<DatabaseServer>(*epochs_, *metrics_, std::move(socket), options,
                                               std::move(tls));
  }
  LoopbackClient& add(Clients& clients) const {
    return *clients.emplace_back(std::make_unique<LoopbackClient>(url()));
  }

  // An epoch whose hints are more than sockets hold, 40 MB.
  static LoadedDatabase large_database() {
    constexpr uint32_t kLargeRecord = 3000;
    LoadedDatabase database = tiny_database(support::PlainEngine::make(kRows, kColumns));
    Layout& layout = database.manifest.layout;
    layout.record.value_bytes = kLargeRecord - layout.record.digest_bytes;
    database.engine = support::PlainEngine::make(kRows, kShards * kLargeRecord);
    database.engine->seal();
    EpochDownloads downloads = *database.downloads;
    downloads.hints.assign(kShards, std::make_shared<const std::vector<uint8_t>>(
                                        layout.hint_part_bytes(), uint8_t{'h'}));
    database.downloads = std::make_shared<const EpochDownloads>(std::move(downloads));
    database.epoch = EpochId(64, 'a');
    return database;
  }
};

}  // namespace blindfuse::server_testing
