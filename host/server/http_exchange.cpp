#include "host/server/http_exchange.h"

#include <utility>

#include "host/server/access_log.h"

namespace blindfuse {
namespace {

using Clock = Connection::Clock;

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

// What became of a request's queries; nothing for a request that was refused before it had any.
std::optional<QueryOutcome> outcome_of(const ActiveRequest& request) {
  if (request.answer && request.answer->is_done()) {
    switch (request.answer->outcome()) {
      case PendingAnswer::Outcome::kAnswered:
        return QueryOutcome::kAnswered;
      case PendingAnswer::Outcome::kEngineFailed:
        return QueryOutcome::kEngineFailed;
      case PendingAnswer::Outcome::kExpired:
        return QueryOutcome::kTimedOut;
    }
  }
  if (!request.problem) return std::nullopt;
  switch (request.problem->kind) {
    case ProblemKind::kBusy:
      return QueryOutcome::kQueueFull;
    case ProblemKind::kTimedOut:
      return QueryOutcome::kTimedOut;
    case ProblemKind::kStopping:
      return QueryOutcome::kStopping;
    default:
      return std::nullopt;
  }
}

bool has_unread_body(const ActiveRequest& request) {
  return request.head.has_body() && !(request.body && request.body->is_whole());
}

}  // namespace

HttpExchange::Outcome HttpExchange::serve(Connection& connection) {
  // Requests that a client has sent ahead do not keep others waiting.
  constexpr unsigned kRequestsAtOnce = 16;
  const unsigned stop_at = connection.request_count() + kRequestsAtOnce;
  for (;;) {
    const uint64_t sent_before = connection.sent_bytes();
    const Connection::Sending sending = connection.flush();
    context_.metrics.on_sent(connection.sent_bytes() - sent_before);
    if (sending == Connection::Sending::kFailed) return Outcome::kClose;
    if (sending == Connection::Sending::kBlocked) return Outcome::kWait;
    Step step = Step::kOn;
    if (connection.request()) {
      const bool asked = connection.request()->answer != nullptr;
      step = asked ? await_answer(connection) : read_body(connection);
    } else if (connection.is_last()) {
      return connection.may_be_sending() ? Outcome::kLinger : Outcome::kClose;
    } else if (connection.request_count() >= stop_at) {
      return Outcome::kAgain;
    } else {
      step = read_head(connection);
    }
    if (step == Step::kWait) return Outcome::kWait;
    if (step == Step::kClose) return Outcome::kClose;
  }
}

HttpExchange::Step HttpExchange::read_head(Connection& connection) {
  std::optional<RequestHead> head;
  try {
    head = parse_request_head(connection.received());
  } catch (const Refusal& refusal) {
    respond_and_end(connection, refusal.problem());
    return Step::kOn;
  }
  if (head) {
    begin_request(connection, std::move(*head));
    return Step::kOn;
  }
  switch (connection.receive()) {
    case Connection::Arrival::kBytes:
      return Step::kOn;
    case Connection::Arrival::kNothing:
      // One whose bytes keep it awake is never found waiting when its time is up.
      return connection.is_overdue() ? Step::kClose : Step::kWait;
    case Connection::Arrival::kClosed:
      break;
  }
  return Step::kClose;
}

void HttpExchange::begin_request(Connection& connection, RequestHead head) {
  ActiveRequest request;
  request.begun_at = Clock::now();
  request.head_text = connection.received().substr(0, head.byte_count);
  // cpp-httplib 0.11.4 refuses what it cannot parse as a range, whatever the route, does not check
  // ranges against the size of what it sends, and answers Expect when the body has long arrived; so
  // it does not get to see either: the headers get names that nothing knows.
  if (head.range_name_at != 0) request.head_text[head.range_name_at] = 'x';
  if (head.expect_name_at != 0) request.head_text[head.expect_name_at] = 'x';
  request.head = std::move(head);
  connection.consume(request.head.byte_count);
  try {
    check_request(request);
    if (request.query) {
      request.body.emplace(request.head,
                           request.query->limits.body_bytes_max(request.query->format));
    }
  } catch (const Refusal& refusal) {
    request.problem = refusal.problem();
  }
  const bool reads_body = request.body.has_value();
  const bool says_continue = reads_body && request.head.wants_continue && !request.head.is_http_1_0;
  connection.begin_request(std::move(request));
  if (says_continue && connection.received().empty()) {
    connection.send("HTTP/1.1 100 Continue\r\n\r\n");
  }
  if (!reads_body) respond(connection);
}

// Everything that a head decides. Throws Refusal.
void HttpExchange::check_request(ActiveRequest& request) const {
  const RequestHead& head = request.head;
  const ServerOptions& options = context_.options;
  // A browser's question whether a page may ask; it carries no key.
  if (head.method == "OPTIONS" && !options.cors_origins.empty() && !head.origin.empty()) return;
  request.match = match_route(head.method, head.path, options.routes);
  if (head.method != "POST" && head.has_body()) {
    throw Refusal(ProblemKind::kMalformedRequest, "a " + head.method + " request has no body");
  }
  if (options.api_keys && needs_api_key(request.match->route)) {
    request.key_name = options.api_keys->find(head.authorization);
    if (!request.key_name) {
      throw Refusal(Problem{.kind = ProblemKind::kUnauthorized,
                            .detail = "this server wants an API key: Authorization: Bearer KEY",
                            .headers = {{"WWW-Authenticate", "Bearer"}}});
    }
  }
  if (request.match->route != Route::kQueries) return;
  request.query = check_query_head(context_.epochs.find(request.match->epoch), head,
                                   options.queries_per_request_max);
}

HttpExchange::Step HttpExchange::read_body(Connection& connection) {
  ActiveRequest& request = *connection.request();
  try {
    if (request.body->is_whole()) {
      ask_engine(connection);
      return Step::kOn;
    }
    switch (connection.receive_body()) {
      case Connection::Arrival::kBytes:
        return Step::kOn;
      case Connection::Arrival::kNothing:
        if (!connection.is_overdue()) return Step::kWait;
        throw Refusal(ProblemKind::kRequestTimeout, "the body did not arrive in time");
      case Connection::Arrival::kClosed:
        throw Refusal(ProblemKind::kMalformedRequest, "the body is cut off");
    }
  } catch (const Refusal& refusal) {
    refuse(connection, refusal);
  }
  return Step::kOn;
}

// The body is whole: its queries take their place in the queue.
void HttpExchange::ask_engine(Connection& connection) {
  ActiveRequest& request = *connection.request();
  const auto deadline = Clock::now() + context_.options.timeouts.answer;
  const std::span<char> body = request.body->bytes();
  // A guess, in case that they are refused.
  request.query_count = request.query->limits.query_count(request.query->format, body.size());
  request.answer = ask_queries(*request.query, {body.data(), body.size()}, deadline,
                               [notify = context_.on_answer, id = connection.id()] { notify(id); });
  request.query_count = request.answer->query_count();
  connection.set_request_deadline(deadline);
  connection.release_body();
}

HttpExchange::Step HttpExchange::await_answer(Connection& connection) {
  PendingAnswer& answer = *connection.request()->answer;
  if (answer.is_done()) {
    respond(connection);
    return Step::kOn;
  }
  if (!connection.is_overdue()) return Step::kWait;
  if (answer.drop()) {
    refuse(connection, timed_out_in_queue());
    return Step::kOn;
  }
  // The engine has begun with it, or is just done.
  connection.set_request_deadline(Clock::time_point::max());
  return answer.is_done() ? Step::kOn : Step::kWait;
}

void HttpExchange::refuse(Connection& connection, const Refusal& refusal) {
  connection.request()->problem = refusal.problem();
  respond(connection);
}

// Puts the response to the connection's request behind what is to be sent.
void HttpExchange::respond(Connection& connection) {
  const ActiveRequest& request = *connection.request();
  const bool unread = has_unread_body(request);
  const bool last = request.head.wants_close || request.head.chunked || context_.stopping ||
                    unread ||
                    connection.request_count() >= context_.options.requests_per_connection_max;
  // A method that is younger than the library.
  if (request.problem && request.head.method == "QUERY") {
    return respond_and_end(connection, Problem(*request.problem));
  }
  const HttpResponder::Written written = responder_.respond(connection, last);
  if (written.last) connection.set_last();
  record(connection, written.status);
  connection.end_request(unread);
}

// A whole response, for a request that the library would not understand.
void HttpExchange::respond_and_end(Connection& connection, const Problem& problem) {
  const std::string body = serialize_problem(problem);
  std::string head = "HTTP/1.1 " + std::to_string(problem.status()) + " " +
                     std::string(problem.title()) +
                     "\r\nConnection: close\r\nCache-Control: no-store\r\nContent-Type: " +
                     std::string(kProblemContentType) +
                     "\r\nContent-Length: " + std::to_string(body.size()) + "\r\n";
  for (const auto& [name, value] : problem.headers) head += name + ": " + value + "\r\n";
  connection.send(head + "\r\n" + body);
  connection.set_last();
  record(connection, problem.status());
  connection.end_request(true);
}

void HttpExchange::record(const Connection& connection, int status) {
  const ActiveRequest* request = connection.request() ? &*connection.request() : nullptr;
  AccessEvent event;
  event.status = status;
  event.peer = connection.peer();
  if (request != nullptr) {
    event.method = request->head.method;
    if (request->match) event.route = request->match->route;
    if (request->key_name) event.key_name = *request->key_name;
    event.received_bytes = request->head_text.size();
    if (request->body) event.received_bytes += request->body->byte_count();
    event.time = Clock::now() - request->begun_at;
    if (const auto outcome = outcome_of(*request)) {
      context_.metrics.on_queries(*outcome, request->query_count);
    }
  }
  const std::string_view route = event.route ? name_of(*event.route) : "none";
  context_.metrics.on_request(route, status, event.received_bytes, event.time);
  if (context_.options.access_log) log_access(event);
}

}  // namespace blindfuse
