#include "host/server/routes/http_responder.h"

#include <spdlog/spdlog.h>

#include <algorithm>

#include "host/server/routes/database_routes.h"
#include "host/server/routes/openapi.h"
#include "host/server/routes/page_route.h"
#include "host/server/routes/query_route.h"
#include "host/server/server_state.h"

namespace blindfuse {
namespace {

constexpr const char* kImmutableForOne = "private, max-age=31536000, immutable";

void write_problem(const Problem& problem, httplib::Response& response) {
  response.status = problem.status();
  // What is wrong now, an epoch that has not arrived here, may be right in a moment.
  response.headers.erase("Cache-Control");
  response.set_header("Cache-Control", "no-store");
  response.body = serialize_problem(problem);
  response.headers.erase("Content-Type");
  response.set_header("Content-Type", std::string(kProblemContentType));
  for (const auto& [name, value] : problem.headers) response.set_header(name, value);
}

// For handlers whose exceptions the library would answer in its own way, or not catch at all.
template <typename Work>
void answer_or_refuse(httplib::Response& response, Work work) {
  try {
    work();
  } catch (const Refusal& refusal) {
    write_problem(refusal.problem(), response);
  } catch (const std::exception& error) {
    spdlog::error("a request failed: {}", error.what());
    write_problem(Problem{.kind = ProblemKind::kInternalError,
                          .detail = "the server failed to answer this request"},
                  response);
  }
}

}  // namespace

// A request's head on one side, a connection's output on the other.
class HttpResponder::ResponseStream final : public httplib::Stream {
 public:
  ResponseStream(std::string_view head, Connection& connection)
      : head_(head), connection_(connection) {}

  ssize_t read(char* bytes, size_t size) override {
    size = std::min(size, head_.size());
    std::copy_n(head_.begin(), size, bytes);
    head_.remove_prefix(size);
    return static_cast<ssize_t>(size);
  }
  ssize_t write(const char* bytes, size_t size) override {
    // Of what an epoch holds in memory nothing is copied: with its first part all of it is lent.
    const auto& resource = connection_.request()->resource;
    const bool lent = resource && next_part_ < resource->parts.size() &&
                      reinterpret_cast<const char*>(resource->parts[next_part_].data()) == bytes;
    if (!lent) {
      connection_.send({bytes, size});
    } else if (next_part_++ == 0) {
      connection_.lend(resource->parts, resource->owner);
    }
    return static_cast<ssize_t>(size);
  }
  bool is_readable() const override { return true; }
  bool is_writable() const override { return true; }
  void get_remote_ip_and_port(std::string&, int&) const override {}
  void get_local_ip_and_port(std::string&, int&) const override {}
  socket_t socket() const override { return connection_.fd(); }

 private:
  std::string_view head_;
  Connection& connection_;
  size_t next_part_ = 0;  // of the resource that is sent
};

HttpResponder::HttpResponder(const ServerContext& context) : context_(context) {
  // The library writes content only while it believes that it listens, which any number but its
  // INVALID_SOCKET says. It has no other use for the number, since it neither accepts nor closes.
  svr_sock_ = 0;
  set_keep_alive_max_count(context.options.requests_per_connection_max);
  set_keep_alive_timeout(
      std::chrono::duration_cast<std::chrono::seconds>(context.options.timeouts.idle).count());
  install_handlers();
}

HttpResponder::Written HttpResponder::respond(Connection& connection, bool last) {
  request_ = &*connection.request();
  last_ = last;
  status_ = 0;
  ResponseStream stream(request_->head_text, connection);
  bool closed = false;
  const bool written = process_request(stream, last_, closed, [this](httplib::Request& parsed) {
    accept_encoding_ = parsed.get_header_value("Accept-Encoding");
    // Or the library would compress responses, which look random, at a second for every megabyte.
    parsed.headers.erase("Accept-Encoding");
  });
  request_ = nullptr;
  return {status_, last_ || !written};
}

void HttpResponder::install_handlers() {
  // Before the library looks for a body or a route of its own.
  set_pre_routing_handler([this](const httplib::Request& request, httplib::Response& response) {
    answer_or_refuse(response, [&] { answer(request, response); });
    return HandlerResponse::Handled;
  });
  // Runs for every status of 400 or more, also those that the library comes up with.
  set_error_handler([](const httplib::Request&, httplib::Response& response) {
    if (response.get_header_value("Content-Type") == kProblemContentType) return;
    write_problem(Problem{.kind = problem_kind_of(response.status),
                          .detail = "the request is not one that this server understands"},
                  response);
  });
  set_post_routing_handler(
      [this](const httplib::Request&, httplib::Response& response) { finish_header(response); });
}

void HttpResponder::answer(const httplib::Request& request, httplib::Response& response) {
  if (request_->problem) throw Refusal(*request_->problem);
  if (!request_->match) return answer_preflight(response);
  switch (request_->match->route) {
    case Route::kDatabase:
    case Route::kShards:
    case Route::kHint:
      return answer_download(request, response);
    case Route::kQueries:
      return answer_queries(*request_->query, *request_->answer, response);
    case Route::kLive:
      return answer_health(true, response);
    case Route::kReady:
      return answer_health(is_ready(), response);
    case Route::kMetrics:
      return answer_metrics(response);
    case Route::kOpenApi:
      return answer_openapi(response);
    case Route::kPage:
      return answer_page(request, response);
  }
}

void HttpResponder::answer_download(const httplib::Request& request, httplib::Response& response) {
  const RouteMatch& match = *request_->match;
  switch (match.route) {
    case Route::kShards:
      request_->resource = shards_resource(context_.epochs.find(match.epoch));
      break;
    case Route::kHint:
      request_->resource = hint_resource(context_.epochs.find(match.epoch), request);
      break;
    default:
      // As short as it is, it is sent whole.
      request_->resource = database_resource(context_.epochs.current());
      return send_resource(request, "", *request_->resource, response);
  }
  // A cache between us must not hand to others what a client needed a key for.
  if (context_.options.api_keys) request_->resource->cache_control = kImmutableForOne;
  response.set_header("Accept-Ranges", "bytes");
  const bool whole = request_->head.method == "HEAD";  // a range is of a GET
  send_resource(request, whole ? "" : request_->head.range, *request_->resource, response);
}

bool HttpResponder::is_ready() const {
  const auto& draining = context_.options.draining;
  return !context_.stopping && !(draining && *draining);
}

void HttpResponder::answer_health(bool ready, httplib::Response& response) const {
  if (!ready) throw Refusal(ProblemKind::kStopping, "this server is stopping");
  response.status = 200;
  response.body = "{\"status\":\"ok\"}\n";
  response.set_header("Content-Type", "application/json");
  response.set_header("Cache-Control", "no-store");
}

void HttpResponder::answer_metrics(httplib::Response& response) const {
  response.status = 200;
  response.body = context_.metrics.text(state_of(context_.epochs));
  response.set_header("Content-Type", std::string(kMetricsContentType));
  response.set_header("Cache-Control", "no-store");
}

void HttpResponder::answer_openapi(httplib::Response& response) {
  const auto epoch = context_.epochs.current();
  if (openapi_epoch_ != epoch->database().epoch) {
    openapi_text_ = openapi_document(*epoch, context_.options);
    openapi_epoch_ = epoch->database().epoch;
  }
  response.status = 200;
  response.body = openapi_text_;
  response.set_header("Content-Type", "application/json");
  response.set_header("Cache-Control", "no-cache");
}

void HttpResponder::answer_page(const httplib::Request& request, httplib::Response& response) {
  request_->resource =
      page_resource(context_.options.page, request_->head.path, accept_encoding_, response);
  send_resource(request, "", *request_->resource, response);
}

// The origin goes into the header like that of any response.
void HttpResponder::answer_preflight(httplib::Response& response) const {
  response.status = 204;
  response.set_header("Access-Control-Allow-Methods", "GET, HEAD, POST");
  response.set_header("Access-Control-Allow-Headers",
                      "Authorization, Content-Type, If-None-Match, If-Range, Range");
  response.set_header("Access-Control-Max-Age", "86400");
}

// What Access-Control-Allow-Origin says for this request; empty: nothing.
std::string HttpResponder::allowed_origin() const {
  const auto& origins = context_.options.cors_origins;
  if (origins.empty() || request_->head.origin.empty()) return "";
  if (std::ranges::find(origins, "*") != origins.end()) return "*";
  const bool allowed = std::ranges::find(origins, request_->head.origin) != origins.end();
  return allowed ? request_->head.origin : "";
}

void HttpResponder::finish_header(httplib::Response& response) {
  status_ = response.status;
  if (response.status == 304) {
    // It must not announce the length of nothing; and a client that then waits for the end needs
    // one.
    response.headers.erase("Content-Length");
    last_ = true;
  }
  if (last_) {
    response.headers.erase("Keep-Alive");
    response.headers.erase("Connection");
    response.set_header("Connection", "close");
  }
  if (context_.options.cors_origins.empty()) return;
  const bool varies = response.has_header("Vary");
  response.headers.erase("Vary");
  response.set_header("Vary", varies ? "Accept-Encoding, Origin" : "Origin");
  const std::string origin = allowed_origin();
  if (origin.empty()) return;
  response.set_header("Access-Control-Allow-Origin", origin);
  response.set_header("Access-Control-Expose-Headers",
                      "Accept-Ranges, Content-Range, ETag, Retry-After");
}

}  // namespace blindfuse
