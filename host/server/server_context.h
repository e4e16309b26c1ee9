// What all threads of a server share.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "host/server/api_keys.h"
#include "host/server/connections/connection.h"
#include "host/server/epochs/serving_epoch.h"
#include "host/server/routes/page.h"
#include "host/server/routes/router.h"
#include "host/server/server_metrics.h"

namespace blindfuse {

struct ServerOptions {
  // At least 1. They compute, and never wait for a client or the engine.
  unsigned http_threads = 4;
  uint64_t queries_per_request_max = 16;  // 1 .. the queue's limit
  unsigned requests_per_connection_max = 1000;
  size_t connections_max = 1000;  // beyond that, clients that send nothing make room for new ones
  // What all bodies that are arriving may hold; beyond that, the one that has been arriving longest
  // is given up. 0: 64 of the longest there can be.
  uint64_t body_bytes_max = 0;
  ConnectionTimeouts timeouts;
  RouteSet routes = RouteSet::kAll;
  std::shared_ptr<const ApiKeys> api_keys;  // none: anyone may ask
  std::vector<std::string> cors_origins;    // whose pages may ask; "*": all
  std::shared_ptr<const Page> page;         // none: browsers get no page
  bool access_log = false;
  // Set by whoever stops the service: the server is not ready any more, though it still answers.
  std::shared_ptr<const std::atomic<bool>> draining;
};

struct ServerContext {
  const ServerOptions& options;
  const ServedEpochs& epochs;
  ServerMetrics& metrics;
  const std::atomic<bool>& stopping;
  // Called, by the engine's worker, when the answer for this connection is there; may be called
  // after the server has gone.
  std::function<void(Connection::Id)> on_answer;
};

}  // namespace blindfuse
