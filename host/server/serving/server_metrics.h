// The metrics for operators, in Prometheus's format. docs/REFERENCE.md lists every name.
#pragma once

#include <prometheus/counter.h>
#include <prometheus/family.h>
#include <prometheus/gauge.h>
#include <prometheus/histogram.h>
#include <prometheus/registry.h>

#include <atomic>
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

#include "host/server/serving/batch_scheduler.h"

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

// The memory in bytes that arriving requests, and responses from the queue until they are sent,
// hold, and may hold.
struct HttpMemory {
  uint64_t request_bytes = 0;
  uint64_t request_bytes_max = 0;
  uint64_t response_bytes = 0;
  uint64_t response_bytes_max = 0;
};

// The state at the moment of asking.
struct ServerState {
  size_t queue_length = 0;
  uint64_t matrix_bytes = 0;  // of all epochs in memory
  uint64_t hint_bytes = 0;
  uint64_t packing_table_bytes = 0;
  size_t epochs = 0;
  // Of the current epoch.
  uint64_t keys = 0;
  std::time_t published_at = 0;
  std::string epoch;
  std::string engine;
};

// Any thread.
class ServerMetrics final : public BatchObserver {
 public:
  ServerMetrics();

  // `route` and `status` have few values each. Text of a request is never a label.
  void on_request(std::string_view route, int status, uint64_t received_bytes,
                  std::chrono::duration<double> time);
  void on_cut(std::string_view why, size_t count);
  void on_sent(uint64_t bytes) { sent_bytes_.Increment(static_cast<double>(bytes)); }
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
  // Whether the CPU computes because of the file of a device's fault.
  void set_device_set_aside(bool is_set_aside) { device_set_aside_.Set(is_set_aside ? 1 : 0); }

  // The counters in which a server counts its connections.
  std::atomic<size_t>& open_connections() { return open_connections_; }

  // Called at every text(); nullptr: there is none.
  void set_http_memory(std::function<HttpMemory()> ask);

  // The time at which the server's certificate expires. Called at every text(); nullptr: there is
  // no certificate. Set before anything is served.
  void set_certificate(std::function<std::time_t()> expires_at) {
    certificate_expires_at_ = std::move(expires_at);
  }

  // Everything in Prometheus's text format.
  std::string text(const ServerState& state);

 private:
  void set_state(const ServerState& state);
  void set_process();

  // The references below stay valid as long as this does.
  prometheus::Registry registry_;
  prometheus::Family<prometheus::Counter>& requests_;
  prometheus::Family<prometheus::Histogram>& request_seconds_;
  prometheus::Counter& received_bytes_;
  prometheus::Counter& sent_bytes_;
  prometheus::Gauge& connections_;
  prometheus::Family<prometheus::Counter>& cut_connections_;
  prometheus::Family<prometheus::Gauge>& http_memory_;
  prometheus::Family<prometheus::Gauge>& http_memory_max_;
  prometheus::Family<prometheus::Counter>& queries_;
  prometheus::Family<prometheus::Counter>& key_queries_;
  prometheus::Gauge& queue_length_;
  prometheus::Histogram& queue_wait_;
  prometheus::Histogram& batch_queries_;
  prometheus::Histogram& batch_seconds_;
  prometheus::Counter& engine_failures_;
  prometheus::Gauge& device_set_aside_;
  prometheus::Family<prometheus::Gauge>& epoch_;
  prometheus::Family<prometheus::Counter>& epoch_loads_;
  prometheus::Gauge& epoch_publish_time_;
  prometheus::Gauge& epochs_;
  prometheus::Gauge& keys_;
  prometheus::Family<prometheus::Gauge>& database_bytes_;
  prometheus::Family<prometheus::Gauge>& certificate_expiry_time_;
  prometheus::Gauge& resident_bytes_;
  prometheus::Gauge& open_descriptors_;
  prometheus::Gauge& descriptors_max_;
  prometheus::Gauge& start_time_;
  prometheus::Counter& cpu_seconds_;

  std::atomic<size_t> open_connections_ = 0;
  std::mutex text_mutex_;  // one reader at a time
  prometheus::Gauge* epoch_info_ = nullptr;
  std::string epoch_now_;
  std::function<void(const std::string&)> on_device_lost_;
  std::function<HttpMemory()> ask_http_memory_;
  std::function<std::time_t()> certificate_expires_at_;
};

}  // namespace blindfuse
