// The operator's side of a running server: metrics, health, the epochs in memory, the log's level,
// and draining. docs/OPERATING.md, section "The admin listener", lists the addresses.
#pragma once

#include <memory>
#include <string>

#include "host/server/http/handler.h"
#include "host/server/serving/readiness.h"
#include "host/server/serving/server_metrics.h"
#include "host/server/serving/serving_epoch.h"

namespace blindfuse {

// The address of an admin listener determines who may use it, since requests carry no credentials.
enum class AdminAccess {
  kEverything,        // a loopback address or a UNIX socket: only this machine's users can connect
  kMetricsAndHealth,  // any other address
};

class Admin final : public http::Handler {
 public:
  // Everything given by reference outlives this.
  Admin(const ServedEpochs& epochs, ServerMetrics& metrics, Readiness& readiness,
        AdminAccess access);

  std::unique_ptr<http::Exchange> begin(http::RequestHead head, const std::string& peer) override;
  http::Response refuse(const http::Error& error, const std::string& peer) override;
  uint64_t all_bodies_bytes_max() const override;
  uint64_t all_responses_bytes_max() const override;

 private:
  class Exchange;
  struct Request;
  using Answer = http::Response (Admin::*)(const Request& request);
  struct Address;

  static const Address* find(std::string_view path);

  http::Response answer(const Request& request);
  http::Response answer_metrics(const Request& request);
  http::Response answer_live(const Request& request);
  http::Response answer_ready(const Request& request);
  http::Response answer_epochs(const Request& request);
  http::Response answer_log_level(const Request& request);
  http::Response answer_drain(const Request& request);

  const ServedEpochs& epochs_;
  ServerMetrics& metrics_;
  Readiness& readiness_;
  const AdminAccess access_;
};

}  // namespace blindfuse
