// The metrics for operators, in Prometheus's format. docs/REFERENCE.md lists every name.
#pragma once

#include <prometheus/counter.h>
#include <prometheus/family.h>
#include <prometheus/gauge.h>
#include <prometheus/histogram.h>
#include <prometheus/registry.h>

#include <chrono>
#include <cstdint>
#include <ctime>
#include <exception>
#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>
#include <utility>

#include "host/server/http/server.h"
#include "host/server/serving/batch_scheduler.h"
#include "host/server/serving/serving_epoch.h"

namespace blindfuse {

inline constexpr std::string_view kMetricsContentType = "text/plain; version=0.0.4; charset=utf-8";

// The outcome of a query.
enum class QueryOutcome {
  kAnswered,
  kQueueFull,
  kMemoryFull,  // that of responses
  kOverQuota,
  kTimedOut,
  kAbandoned,  // its client left without the response
  kEngineFailed,
  kStopping,
};

// The state of the clients' listener at the moment, with the upper limits of request_bytes and
// response_bytes of its load.
struct HttpState {
  http::Load load;
  uint64_t request_bytes_max = 0;
  uint64_t response_bytes_max = 0;
};

// Any thread.
class ServerMetrics final : public BatchObserver {
 public:
  ServerMetrics();

  // `route` and `status` have few values each. Text of a request is never a label.
  void on_request(std::string_view route, int status, uint64_t received_bytes,
                  std::chrono::duration<double> time);
  // key_name: of the client's API key, which the operator's file names. Empty if there is none.
  void on_queries(QueryOutcome outcome, size_t count, const std::string& key_name = "");
  void on_epoch_load(bool success);

  void on_waited(std::chrono::duration<double> time) override;
  void on_batch(size_t query_count, std::chrono::duration<double> time) override;
  void on_failure(const std::exception& error) override;

  // Called on the scheduler's thread if the engine's device is lost. Set before anything is served.
  void set_device_lost_callback(std::function<void(const std::string& what)> callback) {
    on_device_lost_ = std::move(callback);
  }
  // Tells that the CPU computes because of the file of a device's fault, or not.
  void set_device_set_aside(bool is_set_aside) { device_set_aside_.Set(is_set_aside ? 1 : 0); }

  // Called at every text(); nullptr: there is none.
  void set_http(std::function<HttpState()> ask);

  // The time at which the server's certificate expires. Called at every text(); nullptr: there is
  // no certificate. Set before anything is served.
  void set_certificate(std::function<std::time_t()> expires_at) {
    certificate_expires_at_ = std::move(expires_at);
  }

  // Returns all metrics in Prometheus's text format.
  std::string text(const ServedEpochs& epochs);

 private:
  void set_http_state();
  void set_epochs(const ServedEpochs& epochs);
  void set_process();

  // A metric of this name, which is made at the first call.
  prometheus::Family<prometheus::Counter>& counter(const char* name, const char* help);
  prometheus::Family<prometheus::Gauge>& gauge(const char* name, const char* help);
  prometheus::Family<prometheus::Histogram>& histogram(const char* name, const char* help);

  // The references below stay valid as long as this does. All that is not counted event by event is
  // set by text().
  prometheus::Registry registry_;
  prometheus::Family<prometheus::Counter>& requests_;
  prometheus::Family<prometheus::Histogram>& request_seconds_;
  prometheus::Counter& received_bytes_;
  prometheus::Family<prometheus::Counter>& queries_;
  prometheus::Family<prometheus::Counter>& key_queries_;
  prometheus::Histogram& queue_wait_;
  prometheus::Histogram& batch_queries_;
  prometheus::Histogram& batch_seconds_;
  prometheus::Counter& engine_failures_;
  prometheus::Gauge& device_set_aside_;
  prometheus::Family<prometheus::Counter>& epoch_loads_;

  std::mutex text_mutex_;  // one reader at a time
  prometheus::Gauge* epoch_info_ = nullptr;
  std::string epoch_now_;
  std::function<void(const std::string&)> on_device_lost_;
  std::function<HttpState()> ask_http_;
  std::function<std::time_t()> certificate_expires_at_;
};

}  // namespace blindfuse
