#include "host/server/routes/api_exchange.h"

#include <algorithm>
#include <utility>

#include "src/program/log.h"

namespace blindfuse {

ApiExchange::ApiExchange(ApiContext& context, http::RequestHead head, std::string peer)
    : context_(context), head_(std::move(head)), peer_(std::move(peer)) {}

ApiExchange::~ApiExchange() = default;

http::Response ApiExchange::respond() {
  try {
    if (problem_) throw Refusal(*problem_);
    http::Response response = answer();
    count_queries(nullptr);
    return finish(std::move(response));
  } catch (const Refusal& refusal) {
    problem_ = refusal.problem();
  } catch (const http::Error& error) {
    problem_ = problem_of(error);
  } catch (const std::exception& error) {
    log_error("a request failed: {}", error.what());
    problem_ = Problem{.kind = ProblemKind::kInternalError,
                       .detail = "the server failed to answer this request"};
  }
  count_queries(&*problem_);
  return finish(problem_response(*problem_));
}

http::Response ApiExchange::refuse(const http::Error& error, uint64_t body_bytes) {
  body_bytes_ = body_bytes;
  problem_ = problem_of(error);
  return respond();
}

http::Response ApiExchange::finish(http::Response response) {
  if (!context_.options.cors_origins.empty()) allow_origin(response);
  // So that clients that ask again and again find another server.
  response.closes_connection = context_.readiness.is_draining();
  record(response);
  return response;
}

void ApiExchange::allow_origin(http::Response& response) const {
  const auto& origins = context_.options.cors_origins;
  response.set_header("Vary",
                      response.header("Vary").empty() ? "Origin" : "Accept-Encoding, Origin");
  const std::string_view origin = head_.header("Origin");
  if (origin.empty()) return;
  const bool all = std::ranges::find(origins, "*") != origins.end();
  if (!all && std::ranges::find(origins, origin) == origins.end()) return;
  response.set_header("Access-Control-Allow-Origin", all ? "*" : std::string(origin));
  response.set_header("Access-Control-Expose-Headers",
                      "Accept-Ranges, Content-Range, ETag, Retry-After");
}

void ApiExchange::record(const http::Response& response) {
  AccessEvent event;
  event.method = head_.method;
  event.route = route_;
  event.status = response.status;
  event.received_bytes = head_.byte_count + body_bytes_;
  event.sent_bytes = head_.method == "HEAD" ? 0 : response.body_bytes();
  event.epoch = epoch_;
  event.query_count = query_count();
  event.time = http::Clock::now() - begun_at_;
  event.peer = peer_;
  event.key_name = key_name_;
  record_request(context_, event);
}

void ApiExchange::record_departure() {
  constexpr int kClientClosedRequest = 499;  // as nginx counts it; no client sees it
  const std::string_view route = route_ ? name_of(*route_) : "none";
  context_.metrics.on_request(route, kClientClosedRequest, head_.byte_count + body_bytes_,
                              http::Clock::now() - begun_at_);
}

void record_request(ApiContext& context, const AccessEvent& event) {
  const std::string_view route = event.route ? name_of(*event.route) : "none";
  context.metrics.on_request(route, event.status, event.received_bytes, event.time);
  if (context.options.access_log) log_access(event);
}

}  // namespace blindfuse
