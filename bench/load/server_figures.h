// What the server says of the measured interval: the difference of two looks at its metrics.
#pragma once

#include <nlohmann/json.hpp>
#include <optional>
#include <string>

#include "bench/load/metrics_text.h"

namespace blindfuse::load {

// An object with queue_wait_ms (mean), engine_seconds, batches, queries, mean_batch, queue_length,
// resident_bytes and open_fds; each null when the server does not say.
nlohmann::json server_figures(const MetricsText& before, const MetricsText& after);

// Where a server's metrics are, and how they are fetched.
class ServerMetrics {
 public:
  // `url` is that of the metrics themselves. When they are only `supposed` to be there, it is no
  // trouble if they are not. Throws Misuse for what is no URL.
  ServerMetrics(const std::string& url, bool supposed, const std::string& ca_file,
                const std::string& api_key);

  // Nothing when there are none, or they cannot be read; says why on standard error, once.
  std::optional<MetricsText> fetch();

 private:
  std::string url_;
  bool supposed_;
  std::string ca_file_;
  std::string api_key_;
  bool said_why_ = false;
};

}  // namespace blindfuse::load
