// One request to the service: the parts that all requests have in common. Refusals become problem
// documents, pages of other origins are told whether they may read the response, and the request is
// counted and logged.
#pragma once

#include <chrono>
#include <optional>
#include <string>
#include <utility>

#include "host/server/http/handler.h"
#include "host/server/routes/access_log.h"
#include "host/server/routes/api_context.h"
#include "host/server/routes/problem.h"

namespace blindfuse {

class ApiExchange : public http::Exchange {
 public:
  ApiExchange(ApiContext& context, http::RequestHead head, std::string peer);
  ~ApiExchange() override;
  ApiExchange(const ApiExchange&) = delete;
  ApiExchange& operator=(const ApiExchange&) = delete;

  http::Response respond() final;
  http::Response refuse(const http::Error& error, uint64_t body_bytes) final;

  // Set as soon as they are known.
  void set_route(Route route) { route_ = route; }
  void set_key_name(std::string name) { key_name_ = std::move(name); }
  void set_epoch(EpochId epoch) { epoch_ = std::move(epoch); }
  // The response that replaces that of answer().
  void set_problem(Problem problem) { problem_ = std::move(problem); }

 protected:
  // The response. Throws Refusal, http::Error, and any exception for an error of the server.
  virtual http::Response answer() = 0;
  // Counts the outcome of its queries, if it has any. nullptr: they were answered.
  virtual void count_queries(const Problem* /*problem*/) {}
  // Its client has left. Metrics count this, and the log does not report it.
  void record_departure();

  ApiContext& context() { return context_; }
  const http::RequestHead& head() const { return head_; }
  const std::string& key_name() const { return key_name_; }
  void set_body_bytes(uint64_t bytes) { body_bytes_ = bytes; }
  // The number of queries that it has brought.
  virtual size_t query_count() const { return 0; }

 private:
  http::Response finish(http::Response response);
  void allow_origin(http::Response& response) const;
  void record(const http::Response& response);

  ApiContext& context_;
  const http::RequestHead head_;
  const std::string peer_;
  const http::Clock::time_point begun_at_ = http::Clock::now();
  std::optional<Route> route_;
  std::string key_name_;
  EpochId epoch_;
  uint64_t body_bytes_ = 0;
  std::optional<Problem> problem_;
};

// Counts a request that has been answered, and logs it if requests are logged.
void record_request(ApiContext& context, const AccessEvent& event);

}  // namespace blindfuse
