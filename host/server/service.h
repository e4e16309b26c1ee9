// Serves a database: on the network, and from beginning to end, the work of `blindfuse serve` after
// it has loaded the database.
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <memory>
#include <optional>
#include <string>

#include "host/database/loaded_database.h"
#include "host/server/device_end.h"
#include "host/server/http/listening_socket.h"
#include "host/server/http/server.h"
#include "host/server/routes/api.h"
#include "host/server/serving/batch_scheduler.h"
#include "host/server/serving/epoch_reloader.h"
#include "host/server/signals.h"

namespace blindfuse {

struct ServerOptions {
  http::Options http = {};
  ApiOptions api = {};
};

// A database on the network: the service, and the HTTP server that carries it.
class DatabaseServer {
 public:
  // Clients can connect from here on. Everything given by reference outlives the server. Throws the
  // errors of make_api() and http::Server.
  DatabaseServer(const ServedEpochs& epochs, ServerMetrics& metrics, http::ListeningSocket socket,
                 const ServerOptions& options,
                 const std::shared_ptr<const http::TlsCertificate>& tls = nullptr)
      : context_{epochs, metrics, readiness_, options.api},
        api_(make_api(context_)),
        server_(*api_, std::move(socket), options.http, tls) {
    if (tls) metrics.set_certificate([tls] { return tls->expires_at(); });
    metrics.set_http([this] {
      return HttpState{server_.load(), context_.request_bytes_max(), context_.response_bytes_max()};
    });
  }
  ~DatabaseServer() { context_.metrics.set_http(nullptr); }

  const std::string& url() const { return server_.url(); }
  Readiness& readiness() { return readiness_; }
  // Ends downloads of an epoch that is to leave memory, and returns their number. Any thread.
  size_t end_downloads(const EpochDownloads& downloads) {
    return server_.end_responses_of(&downloads);
  }
  // Stops as http::Server::stop() does.
  void stop() {
    readiness_.set_stopping();
    server_.stop();
  }

 private:
  Readiness readiness_;
  ApiContext context_;
  const std::shared_ptr<http::Handler> api_;
  http::Server server_;
};

struct ServiceOptions {
  BatchLimits batches;
  ServerOptions server;
  ReloadOptions reload;
  std::filesystem::path ready_file;  // empty: none
};

struct ServiceParts {
  LoadedDatabase database;
  http::ListeningSocket socket;
  std::optional<http::ListeningSocket> admin_socket;  // without one, there is no admin listener
  std::shared_ptr<http::TlsCertificate> tls;          // may be none
  std::shared_ptr<ApiKeys> api_keys;                  // may be none
  // True if the CPU computes because an earlier process has left the file of a device's fault.
  bool is_device_set_aside = false;
  EpochReloader::Loader loader;  // none: one epoch forever
};

// The number of files that the process may have to open: one for each client, and those of its
// other uses.
uint64_t service_descriptors(const ServiceOptions& options);

// Serves until one of the signals, answers requests that have begun, and returns. SIGHUP reads
// certificate and keys again, and looks for a new epoch. If an engine's device is lost while it
// serves, or a result of it is wrong, `end` ends the process: all waiting clients get status 503.
// Throws the errors of DatabaseServer's start, and DeviceLostError for the server's own first
// query.
void serve_until_stopped(ServiceParts parts, const ServiceOptions& options, Signals& signals,
                         DeviceEnd& end);

}  // namespace blindfuse
