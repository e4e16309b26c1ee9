// The admin listener, which shows the state of a server to the operator and changes it: metrics,
// health, the epochs in memory, the log's level, and draining. docs/OPERATING.md, section "The
// admin listener", lists the addresses.
#pragma once

#include <memory>
#include <string>

#include "host/server/http/server.h"
#include "host/server/routes/api.h"
#include "host/server/serving/server_metrics.h"
#include "host/server/serving/serving_epoch.h"

namespace blindfuse {

// The address of an admin listener determines who may use it, since requests carry no credentials.
enum class AdminAccess {
  kEverything,        // a loopback address or a UNIX socket: only this machine's users can connect
  kMetricsAndHealth,  // any other address
};

// The rights on a listener: everything if only this machine's users can connect.
inline AdminAccess access_at(const http::ListeningSocket& socket) {
  return socket.is_local() ? AdminAccess::kEverything : AdminAccess::kMetricsAndHealth;
}

class AdminServer {
 public:
  // A few requests a minute, from a few programs.
  static constexpr size_t kConnectionsMax = 100;

  // Answers from here on. Everything given by reference outlives the server. Throws the errors of
  // http::Server.
  AdminServer(const ServedEpochs& epochs, ServerMetrics& metrics, Readiness& readiness,
              http::ListeningSocket socket, AdminAccess access);

  const std::string& url() const { return server_.url(); }
  // Stops as http::Server::stop() does.
  void stop() { server_.stop(); }

 private:
  const std::shared_ptr<http::Handler> handler_;
  http::Server server_;
};

}  // namespace blindfuse
