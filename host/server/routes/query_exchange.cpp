#include "host/server/routes/query_exchange.h"

#include <utility>

#include "host/server/routes/epoch_lookup.h"

namespace blindfuse {
namespace {

std::optional<QueryOutcome> outcome_of(const Problem* problem) {
  if (problem == nullptr) return QueryOutcome::kAnswered;
  switch (problem->kind) {
    case ProblemKind::kBusy:
      return QueryOutcome::kQueueFull;
    case ProblemKind::kTimedOut:
      return QueryOutcome::kTimedOut;
    case ProblemKind::kEngineFailed:
      return QueryOutcome::kEngineFailed;
    case ProblemKind::kStopping:
      return QueryOutcome::kStopping;
    default:
      return std::nullopt;  // refused before it had any
  }
}

}  // namespace

// Without a response, its client has left. What the engine has begun with it finishes, for nobody.
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

uint64_t QueryExchange::response_bytes_max(uint64_t body_bytes) const {
  const uint64_t count = query_->limits.query_count(query_->format, body_bytes);
  return response_memory_bytes(query_->format, count, query_->response_bytes);
}

// The queries take their place in the queue.
std::optional<http::Clock::time_point> QueryExchange::start(std::span<char> body,
                                                            std::function<void()> on_done) {
  const auto deadline = http::Clock::now() + context().options.answer_timeout;
  set_body_bytes(body.size());
  // A guess, in case that they are refused.
  query_count_ = query_->limits.query_count(query_->format, body.size());
  try {
    // It may have been retired while the body arrived.
    auto epoch = find_epoch(context().epochs, query_->epoch);
    answer_ = ask_queries(*epoch, *query_, body, deadline, std::move(on_done));
    epoch_ = std::move(epoch);
  } catch (const Refusal& refusal) {
    set_problem(refusal.problem());
    return std::nullopt;
  }
  query_count_ = answer_->query_count();
  return deadline;
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
    context().metrics.on_queries(*outcome, query_count_);
  }
}

}  // namespace blindfuse
