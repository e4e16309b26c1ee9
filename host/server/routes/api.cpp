#include "host/server/routes/api.h"

#include <algorithm>
#include <array>
#include <chrono>
#include <cmath>
#include <nlohmann/json.hpp>
#include <string_view>
#include <utility>

#include "host/server/http/connection.h"
#include "host/server/routes/answer_query.h"
#include "host/server/routes/downloads.h"
#include "host/server/routes/page.h"
#include "host/server/routes/problem.h"
#include "src/base/errors.h"
#include "src/program/log.h"

namespace blindfuse {
namespace {

http::Response answer_live(const ApiRequest&) { return live_response(); }

http::Response answer_ready(const ApiRequest& request) {
  return ready_response(request.context.readiness);
}

// A browser's question whether a page may ask.
http::Response answer_preflight(const ApiRequest&) {
  http::Response response{.status = 204};
  response.set_header("Access-Control-Allow-Methods", "GET, HEAD, POST");
  response.set_header("Access-Control-Allow-Headers",
                      "Authorization, Content-Type, If-None-Match, If-Range, Range");
  response.set_header("Access-Control-Max-Age", "86400");
  return response;
}

struct Route {
  std::string_view name;  // in metrics and logs
  std::string_view prefix;
  std::string_view suffix = {};  // not empty: the epoch lies between; or kAnything
  bool needs_key = true;
  bool is_logged = true;
  ProblemKind malformed = ProblemKind::kMalformedRequest;         // the problem for an InputError
  bool is_query = false;                                          // answer_query() answers it
  http::Response (*answer)(const ApiRequest& request) = nullptr;  // otherwise this does

  std::string_view methods() const { return is_query ? "POST" : "GET, HEAD"; }
};

// A route's prefix may be followed by any path.
constexpr std::string_view kAnything = "*";
constexpr std::string_view kEpochs = "/v1/epochs/";

// Health checks come every few seconds and carry no information. The page is the same for everyone;
// it asks for a key to send with what it fetches.
constexpr Route kRoutes[] = {
    {.name = "database", .prefix = "/v1/database", .answer = answer_database},
    {.name = "shards", .prefix = kEpochs, .suffix = "/shards", .answer = answer_shards},
    {.name = "hint",
     .prefix = kEpochs,
     .suffix = "/hint",
     .malformed = ProblemKind::kMalformedShards,
     .answer = answer_hint},
    {.name = "queries",
     .prefix = kEpochs,
     .suffix = "/queries",
     .malformed = ProblemKind::kMalformedQueries,
     .is_query = true},
    {.name = "live",
     .prefix = "/health/live",
     .needs_key = false,
     .is_logged = false,
     .answer = answer_live},
    {.name = "ready",
     .prefix = "/health/ready",
     .needs_key = false,
     .is_logged = false,
     .answer = answer_ready},
    {.name = "openapi", .prefix = "/openapi.json", .needs_key = false, .answer = answer_openapi},
    {.name = "page", .prefix = "/", .needs_key = false, .answer = answer_page},
    {.name = "page",
     .prefix = "/page/",
     .suffix = kAnything,
     .needs_key = false,
     .answer = answer_page},
    {.name = "page",
     .prefix = "/client/",
     .suffix = kAnything,
     .needs_key = false,
     .answer = answer_page},
};
constexpr Route kNoRoute{.name = "none", .prefix = ""};
constexpr Route kPreflight{.name = "none", .prefix = "", .answer = answer_preflight};

// epoch: set to what the path says.
bool matches(const Route& route, std::string_view path, std::string& epoch) {
  if (route.suffix.empty()) return path == route.prefix;
  if (!path.starts_with(route.prefix)) return false;
  if (route.suffix == kAnything) return true;
  path.remove_prefix(route.prefix.size());
  if (!path.ends_with(route.suffix) || path.size() == route.suffix.size()) return false;
  path.remove_suffix(route.suffix.size());
  if (path.find('/') != std::string_view::npos) return false;
  epoch = path;
  return true;
}

// Finds the route, and sets the epoch that the path names. Throws Refusal: 404 if there is no such
// path, 405 with Allow if the path does not have the method.
const Route& find_route(const http::RequestHead& head, std::string& epoch) {
  for (const Route& route : kRoutes) {
    if (!matches(route, head.path, epoch)) continue;
    const bool reads = head.method == "GET" || head.method == "HEAD";
    if (route.is_query ? head.method == "POST" : reads) return route;
    const std::string allowed(route.methods());
    throw Refusal(Problem{.kind = ProblemKind::kMethodNotAllowed,
                          .detail = "this route takes " + allowed,
                          .headers = {{"Allow", allowed}}});
  }
  throw Refusal(ProblemKind::kUnknownRoute, "this server has no such route");
}

// Returns the name of the API key. Throws Refusal.
std::string check_authorization(const http::RequestHead& head, const ApiKeys& keys) {
  if (auto name = keys.find(head.header("Authorization"))) return *name;
  throw Refusal(Problem{.kind = ProblemKind::kUnauthorized,
                        .detail = "this server requires an API key: Authorization: Bearer KEY",
                        .headers = {{"WWW-Authenticate", "Bearer"}}});
}

void allow_origin(const http::RequestHead& head, const std::vector<std::string>& origins,
                  http::Response& response) {
  response.set_header("Vary",
                      response.header("Vary").empty() ? "Origin" : "Accept-Encoding, Origin");
  const std::string_view origin = head.header("Origin");
  if (origin.empty()) return;
  const bool all = std::ranges::find(origins, "*") != origins.end();
  if (!all && std::ranges::find(origins, origin) == origins.end()) return;
  response.set_header("Access-Control-Allow-Origin", all ? "*" : std::string(origin));
  response.set_header("Access-Control-Expose-Headers",
                      "Accept-Ranges, Content-Range, ETag, Retry-After");
}

// The outcome of queries that were refused. Nothing for requests that were refused before they had
// any.
std::optional<QueryOutcome> outcome_of(ProblemKind kind, const std::exception& error) {
  switch (kind) {
    case ProblemKind::kBusy:
      return dynamic_cast<const QueueFull*>(&error) != nullptr ? QueryOutcome::kQueueFull
                                                               : QueryOutcome::kMemoryFull;
    case ProblemKind::kOverQuota:
      return QueryOutcome::kOverQuota;
    case ProblemKind::kTimedOut:
      return QueryOutcome::kTimedOut;
    case ProblemKind::kEngineFailed:
      return QueryOutcome::kEngineFailed;
    case ProblemKind::kStopping:
      return QueryOutcome::kStopping;
    default:
      return std::nullopt;
  }
}

// Writes a line for a request: the client, the kind of request, and the outcome. The log never has
// a body, an API key, or a path with the names in it.
void log_access(const RequestRecord& record, std::string_view route,
                std::chrono::duration<double> time, const http::Response& response) {
  nlohmann::ordered_json members = {
      {"method", record.method},
      {"route", route},
      {"status", response.status},
      {"received_bytes", record.received_bytes},
      // The bytes of the response's body, if the client takes all of it.
      {"sent_bytes", record.method == "HEAD" ? 0 : response.body_bytes()},
      {"ms", std::round(time.count() * 1e4) / 10},
      {"client", record.peer},
  };
  if (!record.epoch.empty()) members["epoch"] = short_epoch(record.epoch);
  if (record.query_count > 0) members["queries"] = record.query_count;
  if (!record.key_name.empty()) members["key"] = record.key_name;
  log_event(LogLevel::kInfo, "request", members);
}

void check_options(const ApiContext& context) {
  const size_t queue_max = context.epochs.current()->scheduler().limits().queue_max;
  const uint64_t most = context.options.queries_per_request_max.value_or(1);
  if (most >= 1 && most <= queue_max) return;
  throw UsageError("a request may have 1 to " + std::to_string(queue_max) +
                   " queries, as many as may wait in the queue; " + std::to_string(most) +
                   " was asked for");
}

class Api final : public http::Handler {
 public:
  explicit Api(ApiContext& context) : context_(context) {}

  http::Awaitable<http::Response> answer(http::Connection& client) override {
    RequestRecord record{.method = client.head().method, .peer = client.peer()};
    const Route* route = &kNoRoute;
    http::Response response;
    try {
      auto epoch = admit(client.head(), route, record);
      if (route->is_query) {
        response = co_await answer_query(context_, client, std::move(epoch), record);
        context_.metrics.on_queries(QueryOutcome::kAnswered, record.query_count, record.key_name);
      } else {
        response = route->answer({context_, client.head(), std::move(epoch)});
      }
    } catch (const http::ClientLeft&) {
      record.received_bytes = client.head().byte_count + client.body_bytes();
      record_departure(*route, record);
      throw;
    } catch (const std::exception& error) {
      response = refusal_of(error, *route, record.query_count);
    }
    const auto& origins = context_.options.cors_origins;
    if (!origins.empty()) allow_origin(client.head(), origins, response);
    // Clients that ask again and again then find another server.
    response.closes_connection = context_.readiness.is_draining();
    record.received_bytes = client.head().byte_count + client.body_bytes();
    record_request(*route, record, response);
    co_return response;
  }

  http::Response refuse(const http::Error& error, const std::string& peer) override {
    http::Response response = problem_response(problem_of(error));
    record_request(kNoRoute, {.peer = peer}, response);
    return response;
  }

 private:
  // Decides everything that depends on the head alone. Returns the epoch that the request names.
  // Throws Refusal.
  std::shared_ptr<const ServingEpoch> admit(const http::RequestHead& head, const Route*& route,
                                            RequestRecord& record) const {
    const ApiOptions& options = context_.options;
    if (head.method == "OPTIONS" && !options.cors_origins.empty() &&
        !head.header("Origin").empty()) {
      route = &kPreflight;  // which carries no key
      return nullptr;
    }
    std::string id;
    route = &find_route(head, id);
    if (head.method != "POST" && head.has_body()) {
      throw Refusal(ProblemKind::kMalformedRequest, "a " + head.method + " request has no body");
    }
    if (options.api_keys && route->needs_key) {
      record.key_name = check_authorization(head, *options.api_keys);
    }
    if (id.empty()) return nullptr;
    auto epoch = find_epoch(context_.epochs, id);
    record.epoch = std::move(id);
    return epoch;
  }

  http::Response refusal_of(const std::exception& error, const Route& route,
                            size_t query_count) const {
    Problem problem = problem_of(error, route.malformed);
    if (problem.kind == ProblemKind::kInternalError && query_count > 0) {
      problem =
          for_now(ProblemKind::kEngineFailed, "the server could not take the queries; try again");
    }
    if (const auto outcome = outcome_of(problem.kind, error); outcome && query_count > 0) {
      context_.metrics.on_queries(*outcome, query_count);
    }
    return problem_response(problem);
  }

  // Counts the request, and logs it.
  void record_request(const Route& route, const RequestRecord& record,
                      const http::Response& response) const {
    const auto time = http::Clock::now() - record.begun_at;
    context_.metrics.on_request(route.name, response.status, record.received_bytes, time);
    if (context_.options.access_log && route.is_logged) {
      log_access(record, route.name, time, response);
    }
  }

  // A client has left without its response.
  void record_departure(const Route& route, const RequestRecord& record) const {
    if (record.query_count == 0) return;
    constexpr int kClientClosedRequest = 499;  // as nginx counts it; no client sees it
    context_.metrics.on_queries(QueryOutcome::kAbandoned, record.query_count);
    context_.metrics.on_request(route.name, kClientClosedRequest, record.received_bytes,
                                http::Clock::now() - record.begun_at);
  }

  ApiContext& context_;
};

}  // namespace

std::shared_ptr<const ServingEpoch> find_epoch(const ServedEpochs& epochs, const EpochId& id) {
  ServedEpochs::Found found = epochs.find(id);
  if (found.epoch) return std::move(found.epoch);
  throw Refusal(Problem{
      .kind = found.is_retired ? ProblemKind::kRetiredEpoch : ProblemKind::kUnknownEpoch,
      .detail = found.is_retired ? "this epoch has been replaced; fetch /v1/database again"
                                 : "this database has no such epoch; fetch /v1/database",
      .epoch = found.current,
  });
}

QueryBodyLimits query_limits(const ServingEpoch& epoch, const ApiOptions& options) {
  const Layout& layout = epoch.layout();
  const uint64_t usual = layout.batch ? 1
                                      : std::min<uint64_t>(kQueriesPerRequestUsual,
                                                           epoch.scheduler().limits().queue_max);
  return {layout.query_bytes(), options.queries_per_request_max.value_or(usual)};
}

uint64_t ApiContext::request_bytes_max() const {
  uint64_t bytes = options.request_bytes_max;
  for (const auto& epoch : epochs.all()) {
    bytes = std::max(bytes, query_limits(*epoch, options).body_bytes_max(BodyFormat::kJson));
  }
  return bytes;
}

uint64_t ApiContext::response_bytes_max() const {
  uint64_t bytes = options.response_bytes_max;
  for (const auto& epoch : epochs.all()) {
    const uint64_t most = query_limits(*epoch, options).query_count_max;
    bytes = std::max(
        bytes, response_memory_bytes(BodyFormat::kJson, most, epoch->layout().response_bytes()));
  }
  return bytes;
}

std::shared_ptr<http::Handler> make_api(ApiContext& context) {
  check_options(context);
  return std::make_shared<Api>(context);
}

}  // namespace blindfuse
