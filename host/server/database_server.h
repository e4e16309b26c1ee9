// A database on the network: the service, and the HTTP server that carries it.
#pragma once

#include <memory>
#include <string>

#include "host/server/http/server.h"
#include "host/server/routes/api.h"

namespace blindfuse {

struct ServerOptions {
  http::Options http = {};
  ApiOptions api = {};
};

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

}  // namespace blindfuse
