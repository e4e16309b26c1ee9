#include "bench/load/server_figures.h"

#include <algorithm>
#include <charconv>
#include <cstdio>
#include <utility>

#include "bench/load/target.h"
#include "src/base/errors.h"

namespace blindfuse::load {
namespace {

constexpr size_t kMetricsBytesMax = 16 << 20;
constexpr unsigned kTimeoutSeconds = 10;

class TextReceiver : public BodyReceiver {
 public:
  void begin(int, std::optional<uint64_t>) override {}
  void receive(std::span<const uint8_t> bytes) override {
    if (bytes.size() > kMetricsBytesMax - text.size()) {
      throw InputError("they are longer than 16 MiB");
    }
    text.append(reinterpret_cast<const char*>(bytes.data()), bytes.size());
  }

  std::string text;
};

nlohmann::json or_null(std::optional<double> value) {
  return value ? nlohmann::json(*value) : nlohmann::json();
}

std::optional<double> ratio(std::optional<double> a, std::optional<double> b) {
  if (!a || !b || *b == 0) return std::nullopt;
  return *a / *b;
}

}  // namespace

std::optional<double> sum_of(std::string_view metrics, std::string_view name,
                             std::string_view label) {
  std::optional<double> sum;
  for (size_t number = 1; !metrics.empty(); ++number) {
    std::string_view line = metrics.substr(0, metrics.find('\n'));
    metrics.remove_prefix(std::min(line.size() + 1, metrics.size()));
    if (!line.starts_with(name)) continue;
    line.remove_prefix(name.size());
    if (!line.starts_with(' ') && !line.starts_with('{')) continue;
    const size_t space = line.find_last_of(' ');
    if (space == std::string_view::npos || line.substr(0, space).find(label) == line.npos) continue;
    double value = 0;
    const auto [end, error] = std::from_chars(line.begin() + space + 1, line.end(), value);
    if (error != std::errc() || end != line.end()) {
      throw InputError("line " + std::to_string(number) +
                       " of the metrics has no number at its end");
    }
    sum = sum.value_or(0) + value;
  }
  return sum;
}

nlohmann::json server_figures(const std::string& before, const std::string& after) {
  // A counter that is not there yet has counted nothing.
  const auto grown = [&](const char* name, const char* label = "") {
    std::optional<double> growth = sum_of(after, name, label);
    if (growth) *growth -= sum_of(before, name, label).value_or(0);
    return growth;
  };
  const auto wait =
      ratio(grown("blindfuse_queue_wait_seconds_sum"), grown("blindfuse_queue_wait_seconds_count"));
  const auto batches = grown("blindfuse_batch_queries_count");
  const auto queries = grown("blindfuse_batch_queries_sum");
  return {
      {"queue_wait_ms", or_null(wait ? std::optional(*wait * 1e3) : std::nullopt)},
      {"engine_seconds", or_null(grown("blindfuse_batch_seconds_sum"))},
      {"batches", or_null(batches)},
      {"queries", or_null(queries)},
      {"answered", or_null(grown("blindfuse_queries_total", R"(outcome="answered")"))},
      {"mean_batch", or_null(ratio(queries, batches))},
      {"received_bytes", or_null(grown("blindfuse_http_received_bytes_total"))},
      {"sent_bytes", or_null(grown("blindfuse_http_sent_bytes_total"))},
      {"queue_length", or_null(sum_of(after, "blindfuse_queue_length"))},
      {"resident_bytes", or_null(sum_of(after, "process_resident_memory_bytes"))},
      {"open_fds", or_null(sum_of(after, "process_open_fds"))},
  };
}

ServerMetrics::ServerMetrics(const Options& options) : options_(options) {
  if (!options.metrics_url.empty()) parse_target(options.metrics_url);
}

std::optional<std::string> ServerMetrics::fetch() {
  if (options_.metrics_url.empty()) return std::nullopt;
  std::string why;
  try {
    const Target target = parse_target(options_.metrics_url);
    Options options = options_;
    options.timeout_s = kTimeoutSeconds;
    TextReceiver body;
    const HttpReply reply =
        transport_to(target, options)->get(target.socket.empty() ? "" : "/metrics", 0, body);
    if (reply.status == 200) {
      server_figures({}, body.text);  // which it can be read for
      return body.text;
    }
    why = "it answers with status " + std::to_string(reply.status);
  } catch (const std::exception& error) {
    why = error.what();
  }
  if (!std::exchange(said_why_, true)) {
    std::fprintf(stderr, "no figures of the server's own from %s: %s\n",
                 options_.metrics_url.c_str(), why.c_str());
  }
  return std::nullopt;
}

}  // namespace blindfuse::load
