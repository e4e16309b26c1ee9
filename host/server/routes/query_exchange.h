// One request with queries: POST /v1/epochs/{epoch}/queries.
#pragma once

#include <memory>
#include <optional>
#include <string>

#include "host/server/routes/api_exchange.h"
#include "host/server/routes/query_route.h"

namespace blindfuse {

class QueryExchange final : public ApiExchange {
 public:
  using ApiExchange::ApiExchange;
  ~QueryExchange() override;

  // Called once, unless the request is refused.
  void set_query(QueryRequest query, std::string client) {
    query_ = std::move(query);
    client_ = std::move(client);
  }

  std::optional<uint64_t> body_bytes_max() const override;
  uint64_t take_body(std::span<char> body) override;
  bool wants_room() override;
  std::optional<http::Clock::time_point> start(std::function<void()> on_done) override;
  bool is_done() const override { return answer_->is_done(); }
  bool give_up() override;

 private:
  http::Response answer() override;
  void count_queries(const Problem* problem) override;
  size_t query_count() const override { return query_count_; }

  std::optional<QueryOutcome> outcome_of(const Problem* problem) const;

  std::optional<QueryRequest> query_;
  std::string client_;  // as for BatchScheduler::ask()
  // Set from the body's arrival until the answer has been computed, or until there can be none.
  std::shared_ptr<const ServingEpoch> epoch_;
  std::span<const uint8_t> queries_;  // in the body, until start() has returned
  std::shared_ptr<PendingAnswer> answer_;
  size_t query_count_ = 0;
  bool has_started_ = false;
  bool is_answered_ = false;
};

}  // namespace blindfuse
