// The server's own figures for the measured interval: the difference of two readings of its
// metrics, which are in Prometheus' text format.
#pragma once

#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <string_view>

#include "bench/load/options.h"

namespace blindfuse::load {

// The sum of all samples of this name, or of those that have this label, written name="value";
// nothing when there is none. Throws InputError, naming the line, for one without a number.
std::optional<double> sum_of(std::string_view metrics, std::string_view name,
                             std::string_view label = {});

// An object with queue_wait_ms (mean), engine_seconds, batches, queries, mean_batch, queue_length,
// resident_bytes, open_fds and others; each null when the server does not say.
nlohmann::json server_figures(const std::string& before, const std::string& after);

class ServerMetrics {
 public:
  // Of options.metrics_url. Throws UsageError for text that is not an address.
  explicit ServerMetrics(const Options& options);

  // Nothing if no address was given, or if it gives no figures. Writes the reason to standard error
  // once.
  std::optional<std::string> fetch();

 private:
  const Options options_;
  bool said_why_ = false;
};

}  // namespace blindfuse::load
