// What tests of clients that mean no good have in common.
#pragma once

#include <sys/socket.h>

#include <memory>
#include <string>
#include <vector>

#include "tests/server/running_server.h"

namespace blindfuse::server_testing {

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
  static constexpr uint32_t kLargeRecord = 3000;

  static ServerOptions few_threads(unsigned count = 2) {
    ServerOptions options = default_options();
    options.http.threads = count;
    return options;
  }
  void expect_good_clients_served() {
    LoopbackClient client(url());
    for (uint64_t seed = 0; seed < 5; ++seed) {
      client.send(query_request(seed));
      expect_answer(client, seed);
    }
    expect_healthy();
  }

  // An epoch whose hints are more than sockets hold, 40 MB.
  static LoadedDatabase large_database() {
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
  // Of three queries to that epoch.
  static constexpr uint64_t kLargeResponses =
      3 * ((kShards * kLargeRecord * kResponseBits + 7) / 8);
  static std::string large_path(const std::string& rest) {
    return "/v1/epochs/" + EpochId(64, 'a') + rest;
  }
  static std::string large_hint_request() { return get_request(large_path("/hint")); }
  static std::string large_request() {
    return post_request(large_path("/queries"), "application/octet-stream",
                        std::string(3 * kQueryBytes, 'q'));
  }
  // The kernel takes a response of any length off the server's hands; this leaves it room for a few
  // KB.
  void start_large_with_small_buffers(const ServerOptions& options,
                                      std::shared_ptr<const http::TlsCertificate> tls = nullptr) {
    send_buffer_bytes_ = 4'096;
    start(options, {.batch_max = 4, .queue_max = 8}, {}, std::move(tls));
    serve_next(large_database());
  }
  // A client that takes nothing of its three responses.
  LoopbackClient& add_reader(Clients& clients) const {
    LoopbackClient& client = clients.emplace_back(url(), 4'096);
    client.send(large_request());
    client.wait_until_readable();
    return client;
  }
};

}  // namespace blindfuse::server_testing
