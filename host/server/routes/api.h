// The service that clients ask: its options, and the data that its routes share.
#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "host/server/http/request_head.h"
#include "host/server/http/response.h"
#include "host/server/http/server.h"
#include "host/server/routes/problem.h"
#include "host/server/routes/query_body.h"
#include "host/server/serving/api_keys.h"
#include "host/server/serving/server_metrics.h"
#include "host/server/serving/serving_epoch.h"

namespace blindfuse {

// The service's readiness for new clients. Any thread.
class Readiness {
 public:
  // The service was told to stop, and will.
  void set_stopping() { is_stopping_ = true; }
  bool is_stopping() const { return is_stopping_; }

  // The operator takes the service out, in order to stop it or not, or puts it back.
  void set_draining(bool is_draining) { is_draining_ = is_draining; }
  bool is_draining() const { return is_draining_; }

 private:
  std::atomic<bool> is_stopping_ = false;
  std::atomic<bool> is_draining_ = false;
};

// Answers a health check, on the public listener and on the operator's: the program runs.
inline http::Response live_response() {
  http::Response response{.text = "{\"status\":\"ok\"}\n"};
  response.set_header("Content-Type", "application/json");
  response.set_header("Cache-Control", "no-store");
  return response;
}

// Answers whether the service accepts new clients. Throws Refusal (503) if it does not.
inline http::Response ready_response(const Readiness& readiness) {
  if (readiness.is_stopping()) {
    throw Refusal(ProblemKind::kStopping, "this server is stopping");
  }
  if (readiness.is_draining()) {
    throw Refusal(ProblemKind::kStopping, "this server is draining, as its operator asked");
  }
  return live_response();
}

class Page;

inline constexpr uint64_t kQueriesPerRequestUsual = 16;

struct ApiOptions {
  // The limit of queries in a request: 1 .. the queue's limit. None: kQueriesPerRequestUsual, or as
  // many as may wait; and 1 where a query asks for several keys, since it has the bytes of as many.
  std::optional<uint64_t> queries_per_request_max = {};
  std::chrono::milliseconds answer_timeout{
      30'000};  // from the end of a body until the engine begins
  // The bytes that all bodies that are arriving may hold, and all responses from the queue until
  // they are sent. One of the largest is always possible.
  uint64_t request_bytes_max = uint64_t{256} << 20;
  uint64_t response_bytes_max = uint64_t{256} << 20;
  std::shared_ptr<const ApiKeys> api_keys = {};  // none: anyone may ask
  // The header in which a reverse proxy sends the address of its client, the last one if there are
  // several. Empty: there is no proxy.
  std::string client_address_header = {};
  std::vector<std::string> cors_origins = {};  // whose pages may ask; "*": all
  std::shared_ptr<const Page> page = {};       // none: browsers get no page
  bool access_log = false;
};

// The epoch that a request names. Throws Refusal: 410 for one that was served before, 404 for any
// other that is not served.
std::shared_ptr<const ServingEpoch> find_epoch(const ServedEpochs& epochs, const EpochId& id);

// The limits that the options and an epoch's layout set a request.
QueryBodyLimits query_limits(const ServingEpoch& epoch, const ApiOptions& options);

// The data that all requests share. Everything given by reference outlives it.
struct ApiContext {
  const ServedEpochs& epochs;
  ServerMetrics& metrics;
  const Readiness& readiness;
  const ApiOptions options;

  // The description of the epoch for which it was asked last, for answer_openapi().
  std::mutex openapi_mutex = {};
  EpochId openapi_epoch = {};
  std::shared_ptr<const std::string> openapi_text = {};

  // The bytes that arriving bodies, and responses, may hold together with the epochs in service:
  // the next epoch may have queries and responses of another size.
  uint64_t request_bytes_max() const;
  uint64_t response_bytes_max() const;
};

// A request, for metrics and the access log.
struct RequestRecord {
  std::string method = "-";   // "-": not known
  std::string peer = {};      // the client's address
  std::string key_name = {};  // of its API key, if one is needed
  EpochId epoch = {};         // the epoch of the path, if it is served
  size_t query_count =
      0;  // 0 until its body is there, then estimated from its size until it is read
  uint64_t received_bytes = 0;
  std::chrono::steady_clock::time_point begun_at = std::chrono::steady_clock::now();
};

// A request to a route that is answered from memory.
struct ApiRequest {
  ApiContext& context;
  const http::RequestHead& head;
  std::shared_ptr<const ServingEpoch> epoch;  // the epoch of the path; none for other routes
};

// The route GET /openapi.json: docs/HTTP_API.md in the form that tools read (OpenAPI 3.1), with the
// sizes of the database that is served.
http::Response answer_openapi(const ApiRequest& request);
std::string openapi_document(const ServingEpoch& epoch, const ApiOptions& options);

// The service. The context outlives it. Throws UsageError if an option is out of range.
std::shared_ptr<http::Handler> make_api(ApiContext& context);

}  // namespace blindfuse
