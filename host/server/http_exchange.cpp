#include "host/server/http_exchange.h"

#include <spdlog/spdlog.h>

#include <algorithm>

#include "host/server/database_routes.h"

namespace blindfuse {
namespace {

void write_problem(const Problem& problem, httplib::Response& response) {
  response.status = problem.status();
  response.body = serialize_problem(problem);
  response.headers.erase("Content-Type");
  response.set_header("Content-Type", std::string(kProblemContentType));
  for (const auto& [name, value] : problem.headers) response.set_header(name, value);
}

// A whole response, for a request that is too broken to be given to the library.
std::string problem_response(const Problem& problem) {
  const std::string body = serialize_problem(problem);
  return "HTTP/1.1 " + std::to_string(problem.status()) + " " + std::string(problem.title()) +
         "\r\nConnection: close\r\nContent-Type: " + std::string(kProblemContentType) +
         "\r\nContent-Length: " + std::to_string(body.size()) + "\r\n\r\n" + body;
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

HttpExchange::HttpExchange(const ServedEpochs& epochs, const ExchangeLimits& limits,
                           const std::atomic<bool>& stopping)
    : epochs_(epochs), limits_(limits), stopping_(stopping) {
  // The library writes content only while it believes that it listens, which any number but its
  // INVALID_SOCKET says. It has no other use for the number, since it neither accepts nor closes.
  svr_sock_ = 0;
  set_keep_alive_max_count(limits.requests_per_connection_max);
  set_keep_alive_timeout(limits.idle.count());
  install_handlers();
}

void HttpExchange::install_handlers() {
  set_pre_routing_handler([this](const httplib::Request& request, httplib::Response& response) {
    return answer_without_body(request, response) ? HandlerResponse::Handled
                                                  : HandlerResponse::Unhandled;
  });
  // Only a path that has been matched gets this far, so the expression is never tried on a long
  // one.
  Post("/v1/epochs/.*", [this](const httplib::Request&, httplib::Response& response,
                               const httplib::ContentReader& reader) {
    answer_or_refuse(response, [&] { answer_with_body(reader, response); });
  });
  // Asked before a client sends a body; the answer to a refused one is the same as without asking.
  set_expect_100_continue_handler(
      [this](const httplib::Request& request, httplib::Response& response) {
        constexpr int kContinue = 100;
        response.status = kContinue;
        answer_or_refuse(response, [&] {
          const RouteMatch match = match_route(request.method, request.path);
          if (match.route == Route::kQueries) check_queries(request, match);
        });
        const int status = response.status;
        if (status == kContinue) response.status = -1;
        return status;
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

HttpExchange::Outcome HttpExchange::serve(Connection& connection) {
  for (;;) {
    std::optional<RequestHead> head;
    try {
      head = parse_request_head(connection.received());
    } catch (const Refusal& refusal) {
      return connection.send_all(problem_response(refusal.problem())) ? Outcome::kLinger
                                                                      : Outcome::kClose;
    }
    if (head) {
      if (!answer_request(connection, *head)) return Outcome::kClose;
      if (last_) {
        const bool sending = connection.has_unread_body() || connection.has_unread_bytes();
        return sending ? Outcome::kLinger : Outcome::kClose;
      }
      continue;
    }
    switch (connection.receive()) {
      case Connection::Arrival::kBytes:
        continue;
      case Connection::Arrival::kNothing:
        return Outcome::kWait;
      case Connection::Arrival::kClosed:
        return Outcome::kClose;
    }
  }
}

// Whether the response has been sent.
bool HttpExchange::answer_request(Connection& connection, const RequestHead& head) {
  connection_ = &connection;
  head_ = &head;
  query_.reset();
  const QueryBodyLimits limits = query_limits(*epochs_.current(), limits_.queries_per_request_max);
  // Room for the sizes of small chunks beside what they hold.
  connection.begin_request(head, 2 * limits.body_bytes_max(BodyFormat::kJson));
  last_ = head.wants_close || stopping_ ||
          connection.request_count() >= limits_.requests_per_connection_max;
  bool closed = false;
  const bool sent = process_request(connection, last_, closed, [](httplib::Request& request) {
    // Or the library would compress responses, which look random, at a second for every megabyte.
    request.headers.erase("Accept-Encoding");
  });
  query_.reset();  // an epoch that is replaced must not live on in idle threads
  return sent;
}

// false: the request is for queries, its head is right, and its body is still to be read.
bool HttpExchange::answer_without_body(const httplib::Request& request,
                                       httplib::Response& response) {
  answer_or_refuse(response, [&] {
    const RouteMatch match = match_route(request.method, request.path);
    switch (match.route) {
      case Route::kDatabase:
      case Route::kShards:
      case Route::kHint:
        return answer_download(match, request, response);
      case Route::kQueries:
        return check_queries(request, match);
      case Route::kLive:
        return answer_health(true, response);
      case Route::kReady:
        return answer_health(!stopping_, response);
    }
  });
  return response.status != -1;
}

void HttpExchange::answer_download(const RouteMatch& match, const httplib::Request& request,
                                   httplib::Response& response) {
  switch (match.route) {
    case Route::kShards:
      return answer_shards(epochs_.find(match.epoch), request, head_->range, response);
    case Route::kHint:
      return answer_hint(epochs_.find(match.epoch), request, head_->range, response);
    default:
      return answer_database(epochs_.current(), request, head_->range, response);
  }
}

void HttpExchange::answer_health(bool ready, httplib::Response& response) {
  if (!ready) throw Refusal(ProblemKind::kStopping, "this server is stopping");
  response.status = 200;
  response.body = "{\"status\":\"ok\"}\n";
  response.set_header("Content-Type", "application/json");
  response.set_header("Cache-Control", "no-store");
}

void HttpExchange::check_queries(const httplib::Request& request, const RouteMatch& match) {
  query_ = check_query_head(
      epochs_.find(match.epoch), *head_, request.get_header_value("Content-Type"),
      request.get_header_value("Content-Encoding"), limits_.queries_per_request_max);
}

void HttpExchange::answer_with_body(const httplib::ContentReader& reader,
                                    httplib::Response& response) {
  std::string body = read_body(reader);
  answer_queries(*query_, std::move(body), response);
}

std::string HttpExchange::read_body(const httplib::ContentReader& reader) {
  const uint64_t most = query_->limits.body_bytes_max(query_->format);
  std::string body;
  body.reserve(head_->content_length.value_or(0));
  bool too_large = false;
  const bool whole = reader([&](const char* bytes, size_t size) {
    too_large = body.size() + size > most;
    if (!too_large) body.append(bytes, size);
    return !too_large;
  });
  if (whole) return body;
  if (too_large || connection_->is_cut_off()) {
    throw Refusal(ProblemKind::kBodyTooLarge,
                  "the body has more than " + std::to_string(most) + " bytes");
  }
  if (connection_->timed_out()) {
    throw Refusal(ProblemKind::kRequestTimeout, "the body did not arrive in time");
  }
  throw Refusal(ProblemKind::kMalformedRequest,
                "the body is cut off or not chunked as it should be");
}

void HttpExchange::finish_header(httplib::Response& response) {
  // What is left of a refused body would be taken for the next request. A chunked one is never
  // trusted to have ended: the library ends it at the first thing that it does not understand.
  if (connection_->has_unread_body()) last_ = true;
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
}

}  // namespace blindfuse
