// The admin listener: what the operator sees of a server and changes in it.
#pragma once

#include <chrono>
#include <string>
#include <utility>

#include "host/server/admin/admin.h"
#include "host/server/http/server.h"

namespace blindfuse {

// What a listener may be used for: everything where only this machine's users can connect.
inline AdminAccess access_at(const http::ListeningSocket& socket) {
  return socket.is_local() ? AdminAccess::kEverything : AdminAccess::kMetricsAndHealth;
}

class AdminServer {
 public:
  // Answers from here on. What is given by reference outlives the server. Throws what http::Server
  // throws.
  AdminServer(const ServedEpochs& epochs, ServerMetrics& metrics, Readiness& readiness,
              http::ListeningSocket socket, AdminAccess access)
      : admin_(epochs, metrics, readiness, access), server_(admin_, std::move(socket), options()) {}

  // A few requests a minute, from a few programs.
  static constexpr size_t kConnectionsMax = 100;

  const std::string& url() const { return server_.url(); }
  // As http::Server::stop().
  void stop() { server_.stop(); }

 private:
  // It stops after the clients' listener, whose time to drain whoever waits for both has to add.
  static http::Options options() {
    return {.threads = 1,
            .connections_max = kConnectionsMax,
            .timeouts = {.drain = std::chrono::seconds(5)}};
  }

  Admin admin_;
  http::Server server_;
};

}  // namespace blindfuse
