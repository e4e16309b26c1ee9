// The admin listener, which shows the state of a server to the operator and changes it.
#pragma once

#include <chrono>
#include <string>
#include <utility>

#include "host/server/admin/admin.h"
#include "host/server/http/server.h"

namespace blindfuse {

// The rights on a listener: everything if only this machine's users can connect.
inline AdminAccess access_at(const http::ListeningSocket& socket) {
  return socket.is_local() ? AdminAccess::kEverything : AdminAccess::kMetricsAndHealth;
}

class AdminServer {
 public:
  // Answers from here on. Everything given by reference outlives the server. Throws the errors of
  // http::Server.
  AdminServer(const ServedEpochs& epochs, ServerMetrics& metrics, Readiness& readiness,
              http::ListeningSocket socket, AdminAccess access)
      : admin_(epochs, metrics, readiness, access), server_(admin_, std::move(socket), options()) {}

  // A few requests a minute, from a few programs.
  static constexpr size_t kConnectionsMax = 100;

  const std::string& url() const { return server_.url(); }
  // As http::Server::stop().
  void stop() { server_.stop(); }

 private:
  // It stops after the clients' listener. A caller that waits for both has to add this time to
  // drain.
  static http::Options options() {
    return {.threads = 1,
            .connections_max = kConnectionsMax,
            .timeouts = {.drain = std::chrono::seconds(5)}};
  }

  Admin admin_;
  http::Server server_;
};

}  // namespace blindfuse
