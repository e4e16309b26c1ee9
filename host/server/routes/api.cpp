#include "host/server/routes/api.h"

#include <algorithm>
#include <utility>

#include "host/server/http/client_address.h"
#include "host/server/http/resource.h"
#include "host/server/routes/access_log.h"
#include "host/server/routes/database_routes.h"
#include "host/server/routes/epoch_lookup.h"
#include "host/server/routes/health.h"
#include "host/server/routes/openapi.h"
#include "host/server/routes/page_route.h"
#include "host/server/routes/query_body.h"
#include "host/server/routes/query_exchange.h"
#include "src/base/ascii.h"
#include "src/base/errors.h"

namespace blindfuse {
namespace {

bool needs_api_key(Route route) {
  switch (route) {
    case Route::kLive:
    case Route::kReady:
    case Route::kOpenApi:
    case Route::kPage:  // the same for everyone; it asks for a key to send with what it fetches
      return false;
    default:
      return true;
  }
}

// A browser's question whether a page may ask; it carries no key.
bool is_preflight(const http::RequestHead& head, const ApiOptions& options) {
  return head.method == "OPTIONS" && !options.cors_origins.empty() &&
         !head.header("Origin").empty();
}

http::Response preflight_response() {
  http::Response response{.status = 204};
  response.set_header("Access-Control-Allow-Methods", "GET, HEAD, POST");
  response.set_header("Access-Control-Allow-Headers",
                      "Authorization, Content-Type, If-None-Match, If-Range, Range");
  response.set_header("Access-Control-Max-Age", "86400");
  return response;
}

// Throws Refusal. The name of the API key, where one is needed.
std::string check_authorization(const http::RequestHead& head, Route route,
                                const ApiOptions& options) {
  if (!options.api_keys || !needs_api_key(route)) return "";
  if (auto name = options.api_keys->find(head.header("Authorization"))) return *name;
  throw Refusal(Problem{.kind = ProblemKind::kUnauthorized,
                        .detail = "this server requires an API key: Authorization: Bearer KEY",
                        .headers = {{"WWW-Authenticate", "Bearer"}}});
}

// What stands for the client in the queue: the name of its API key, or else the network of its
// address. Clients without an address, as on a UNIX socket, are one client together.
std::string client_of(const http::RequestHead& head, const std::string& peer,
                      const std::string& key_name, const ApiOptions& options) {
  if (!key_name.empty()) return key_name;
  // The client sends what comes before the last address itself, perhaps in a header of its own.
  const auto sent =
      std::ranges::find_if(head.headers.rbegin(), head.headers.rend(), [&](const auto& header) {
        return equal_ignoring_case(header.first, options.client_address_header);
      });
  if (sent != head.headers.rend()) {
    std::string_view address = sent->second;
    address.remove_prefix(std::min(address.find_last_of(", \t") + 1, address.size()));
    std::string network = http::client_network(address);
    if (!network.empty()) return network;
  }
  std::string network = http::client_network(peer);
  return network.empty() ? peer : network;
}

constexpr http::Cut kCuts[] = {http::Cut::kSlowReader, http::Cut::kRequestMemory,
                               http::Cut::kResponseMemory, http::Cut::kLentMemory,
                               http::Cut::kConnections};

// As metrics have it.
std::string_view name_of(http::Cut why) {
  switch (why) {
    case http::Cut::kSlowReader:
      return "slow_reader";
    case http::Cut::kRequestMemory:
      return "request_memory";
    case http::Cut::kResponseMemory:
      return "response_memory";
    case http::Cut::kLentMemory:
      return "epochs";
    case http::Cut::kConnections:
      return "connections";
  }
  return "";
}

const ApiOptions& checked(const ApiOptions& options, const ServedEpochs& epochs) {
  const size_t queue_max = epochs.current()->scheduler().limits().queue_max;
  if (!options.queries_per_request_max) return options;
  const uint64_t most = *options.queries_per_request_max;
  if (most < 1 || most > queue_max) {
    throw UsageError("a request may have 1 to " + std::to_string(queue_max) +
                     " queries, as many as may wait in the queue; " + std::to_string(most) +
                     " was asked for");
  }
  return options;
}

}  // namespace

// A request that is answered from what there is, or refused by its head.
class Api::PlainExchange final : public ApiExchange {
 public:
  PlainExchange(Api& api, http::RequestHead head, std::string peer)
      : ApiExchange(api.context_, std::move(head), std::move(peer)), api_(api) {}

  void set_match(RouteMatch match) { match_ = std::move(match); }

 private:
  http::Response answer() override {
    return match_ ? api_.answer(head(), *match_) : preflight_response();
  }

  Api& api_;
  std::optional<RouteMatch> match_;
};

Api::Api(const ServedEpochs& epochs, ServerMetrics& metrics, const Readiness& readiness,
         ApiOptions options)
    : context_{epochs, metrics, readiness, checked(options, epochs)} {
  // Each is there from the beginning, so that its first one is seen as an increase.
  for (const http::Cut why : kCuts) on_cut(why, 0);
}

// Everything that a head decides.
std::unique_ptr<http::Exchange> Api::begin(http::RequestHead head, const std::string& peer) {
  const ApiOptions& options = context_.options;
  auto exchange = std::make_unique<PlainExchange>(*this, head, peer);
  if (is_preflight(head, options)) return exchange;
  try {
    RouteMatch match = match_route(head.method, head.path);
    exchange->set_route(match.route);
    if (head.method != "POST" && head.has_body()) {
      throw Refusal(ProblemKind::kMalformedRequest, "a " + head.method + " request has no body");
    }
    std::string key_name = check_authorization(head, match.route, options);
    exchange->set_key_name(key_name);
    if (!match.epoch.empty()) {
      find_epoch(context_.epochs, match.epoch);
      exchange->set_epoch(match.epoch);
    }
    if (match.route != Route::kQueries) {
      exchange->set_match(std::move(match));
      return exchange;
    }
    QueryRequest query = check_query_head(*find_epoch(context_.epochs, match.epoch), head, options);
    std::string client = client_of(head, peer, key_name, options);
    auto queries = std::make_unique<QueryExchange>(context_, std::move(head), peer);
    queries->set_route(match.route);
    queries->set_key_name(std::move(key_name));
    queries->set_epoch(std::move(match.epoch));
    queries->set_query(std::move(query), std::move(client));
    return queries;
  } catch (const Refusal& refusal) {
    exchange->set_problem(refusal.problem());
  }
  return exchange;
}

http::Response Api::refuse(const http::Error& error, const std::string& peer) {
  AccessEvent event;
  event.status = error.status();
  event.peer = peer;
  record_request(context_, event);
  return problem_response(problem_of(error));
}

// Of the epochs of the moment: the next may have queries and responses of another size.
uint64_t Api::all_bodies_bytes_max() const {
  uint64_t bytes = context_.options.request_bytes_max;
  for (const auto& epoch : context_.epochs.all()) {
    const QueryBodyLimits limits = query_limits(*epoch, context_.options);
    bytes = std::max(bytes, limits.body_bytes_max(BodyFormat::kJson));
  }
  return bytes;
}

uint64_t Api::all_responses_bytes_max() const {
  uint64_t bytes = context_.options.response_bytes_max;
  for (const auto& epoch : context_.epochs.all()) {
    const uint64_t most = query_limits(*epoch, context_.options).query_count_max;
    bytes = std::max(
        bytes, response_memory_bytes(BodyFormat::kJson, most, epoch->layout().response_bytes()));
  }
  return bytes;
}

void Api::on_connection_opened() { ++context_.metrics.open_connections(); }

void Api::on_cut(http::Cut why, size_t count) { context_.metrics.on_cut(name_of(why), count); }

void Api::on_connection_closed() { --context_.metrics.open_connections(); }

// Throws Refusal and http::Error.
http::Response Api::answer(const http::RequestHead& request, const RouteMatch& match) {
  const bool private_only = context_.options.api_keys != nullptr;
  switch (match.route) {
    case Route::kDatabase:
      return http::respond_with(request, database_resource(*context_.epochs.current()));
    case Route::kShards:
      return http::respond_with(
          request, shards_resource(*find_epoch(context_.epochs, match.epoch), private_only));
    case Route::kHint:
      return http::respond_with(
          request, hint_resource(*find_epoch(context_.epochs, match.epoch), request, private_only));
    case Route::kReady:
      return ready_response(context_.readiness);
    case Route::kLive:
      return live_response();
    case Route::kOpenApi:
      return answer_openapi();
    case Route::kPage:
      return answer_page(context_.options.page, request);
    case Route::kQueries:
      break;
  }
  abort_broken_invariant("queries have an exchange of their own", __FILE__, __LINE__);
}

http::Response Api::answer_openapi() {
  const auto epoch = context_.epochs.current();
  const std::lock_guard lock(openapi_mutex_);
  if (openapi_epoch_ != epoch->database().epoch) {
    openapi_text_ = std::make_shared<const std::string>(openapi_document(*epoch, context_.options));
    openapi_epoch_ = epoch->database().epoch;
  }
  const std::span bytes(reinterpret_cast<const uint8_t*>(openapi_text_->data()),
                        openapi_text_->size());
  http::Response response;
  response.range = {std::make_shared<http::MemoryBody>(bytes, openapi_text_), 0, bytes.size()};
  response.set_header("Content-Type", "application/json");
  response.set_header("Cache-Control", "no-cache");
  return response;
}

}  // namespace blindfuse
