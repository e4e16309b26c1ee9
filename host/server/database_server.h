// A database on the network: the service, and the server that carries it.
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
  // Clients can connect from here on. What is given by reference outlives the server. Throws what
  // Api and http::Server throw.
  DatabaseServer(const ServedEpochs& epochs, ServerMetrics& metrics, http::ListeningSocket socket,
                 const ServerOptions& options,
                 std::shared_ptr<const http::TlsCertificate> tls = nullptr)
      : api_(epochs, metrics, readiness_, options.api),
        server_(api_, std::move(socket), options.http, std::move(tls)) {}

  const std::string& url() const { return server_.url(); }
  Readiness& readiness() { return readiness_; }
  // As http::Server::stop().
  void stop() {
    readiness_.set_stopping();
    server_.stop();
  }

 private:
  Readiness readiness_;
  Api api_;
  http::Server server_;
};

}  // namespace blindfuse
