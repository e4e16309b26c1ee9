#include "host/server/routes/query_exchange.h"

#include <utility>

#include "host/server/routes/epoch_lookup.h"
#include "src/program/log.h"

namespace blindfuse {

// Without a response, its client has left. The engine finishes the queries that it has begun with;
// their results are not used.
QueryExchange::~QueryExchange() {
  if (!answer_ || is_answered_) return;
  answer_->drop();
  context().metrics.on_queries(QueryOutcome::kAbandoned, query_count_);
  record_departure();
}

std::optional<uint64_t> QueryExchange::body_bytes_max() const {
  if (!query_) return std::nullopt;
  return query_->limits.body_bytes_max(query_->format);
}

// Everything that can be wrong with queries is found before others make room for their responses.
uint64_t QueryExchange::take_body(std::span<char> body) {
  set_body_bytes(body.size());
  // A guess, in case that they are refused.
  query_count_ = query_->limits.query_count(query_->format, body.size());
  try {
    // It may have been retired while the body arrived.
    auto epoch = find_epoch(context().epochs, query_->epoch);
    const auto queries = read_queries(*epoch, *query_, body);
    query_count_ = queries.size() / query_->limits.query_bytes;
    queries_ = queries;
    epoch_ = std::move(epoch);
    return response_memory_bytes(query_->format, query_count_, query_->response_bytes);
  } catch (const Refusal& refusal) {
    set_problem(refusal.problem());
  } catch (const std::exception& error) {
    log_error("queries cannot be read: {}", error.what());
    set_problem(queries_failed().problem());
  }
  return 0;
}

// Others may have filled the queue while room for the response was made.
bool QueryExchange::wants_room() {
  try {
    check_queue(*epoch_, client_, query_count_);
    return true;
  } catch (const Refusal& refusal) {
    set_problem(refusal.problem());
  } catch (const std::exception& error) {
    log_error("queries cannot be put into the queue: {}", error.what());
    set_problem(queries_failed().problem());
  }
  queries_ = {};
  epoch_.reset();
  return false;
}

// The queries take their place in the queue.
std::optional<http::Clock::time_point> QueryExchange::start(std::function<void()> on_done) {
  if (queries_.empty()) return std::nullopt;  // refused
  has_started_ = true;
  const auto deadline = http::Clock::now() + context().options.answer_timeout;
  try {
    answer_ = ask_queries(*epoch_, client_, queries_, deadline, std::move(on_done));
    return deadline;
  } catch (const Refusal& refusal) {
    set_problem(refusal.problem());
  } catch (const std::exception& error) {
    log_error("queries cannot be put into the queue: {}", error.what());
    set_problem(queries_failed().problem());
  }
  return std::nullopt;
}

bool QueryExchange::give_up() {
  if (!answer_->drop()) return false;
  epoch_.reset();
  set_problem(timed_out_in_queue().problem());
  return true;
}

http::Response QueryExchange::answer() {
  // Gone before the response is sent, which may take long.
  const auto epoch = std::move(epoch_);
  return answer_queries(*epoch, *query_, *answer_);
}

void QueryExchange::count_queries(const Problem* problem) {
  is_answered_ = true;
  if (const auto outcome = outcome_of(problem)) {
    context().metrics.on_queries(*outcome, query_count_, key_name());
  }
  epoch_.reset();
}

// Nothing where the request was refused before it had any queries.
std::optional<QueryOutcome> QueryExchange::outcome_of(const Problem* problem) const {
  if (problem == nullptr) return QueryOutcome::kAnswered;
  switch (problem->kind) {
    case ProblemKind::kBusy:
      return queries_.empty() || has_started_ ? QueryOutcome::kQueueFull
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

}  // namespace blindfuse
