// The service: it handles each request, whatever transport carries it.
#pragma once

#include <memory>
#include <mutex>
#include <string>

#include "host/server/http/handler.h"
#include "host/server/routes/api_context.h"
#include "host/server/routes/router.h"

namespace blindfuse {

class Api final : public http::Handler {
 public:
  // Everything given by reference outlives this. Throws UsageError if an option is out of range.
  Api(const ServedEpochs& epochs, ServerMetrics& metrics, const Readiness& readiness,
      ApiOptions options);

  std::unique_ptr<http::Exchange> begin(http::RequestHead head, const std::string& peer) override;
  http::Response refuse(const http::Error& error, const std::string& peer) override;
  uint64_t all_bodies_bytes_max() const override;
  uint64_t all_responses_bytes_max() const override;
  void on_connection_opened() override;
  void on_connection_closed() override;
  void on_cut(http::Cut why, size_t count) override;
  void on_sent(uint64_t bytes) override { context_.metrics.on_sent(bytes); }

 private:
  class PlainExchange;

  http::Response answer(const http::RequestHead& request, const RouteMatch& match);
  http::Response answer_openapi();

  ApiContext context_;

  // The description of the epoch that was asked for last.
  std::mutex openapi_mutex_;
  std::string openapi_epoch_;
  std::shared_ptr<const std::string> openapi_text_;
};

}  // namespace blindfuse
