#include "bench/load/server_figures.h"

#include <chrono>
#include <cstdio>

#include "client/http_transport.h"
#include "src/base/errors.h"

namespace blindfuse::load {
namespace {

constexpr size_t kMetricsBytesMax = 16 << 20;
constexpr std::chrono::seconds kTimeout{10};

class TextReceiver : public BodyReceiver {
 public:
  void begin(int, std::optional<uint64_t>) override {}
  void receive(std::span<const uint8_t> bytes) override {
    if (bytes.size() > kMetricsBytesMax - text.size()) {
      throw BadInput("they are longer than 16 MiB");
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

nlohmann::json server_figures(const MetricsText& before, const MetricsText& after) {
  // A counter that is not there yet has counted nothing.
  const auto grown = [&](const std::string& name, const Labels& labels = {}) {
    std::optional<double> growth = after.sum(name, labels);
    if (growth) *growth -= before.sum(name, labels).value_or(0);
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
      {"answered", or_null(grown("blindfuse_queries_total", {{"outcome", "answered"}}))},
      {"mean_batch", or_null(ratio(queries, batches))},
      {"received_bytes", or_null(grown("blindfuse_http_received_bytes_total"))},
      {"sent_bytes", or_null(grown("blindfuse_http_sent_bytes_total"))},
      {"queue_length", or_null(after.sum("blindfuse_queue_length"))},
      {"resident_bytes", or_null(after.sum("process_resident_memory_bytes"))},
      {"open_fds", or_null(after.sum("process_open_fds"))},
  };
}

ServerMetrics::ServerMetrics(const std::string& url, bool supposed, const std::string& ca_file,
                             const std::string& api_key)
    : url_(url), supposed_(supposed), ca_file_(ca_file), api_key_(api_key) {
  parse_url(url);
}

std::optional<MetricsText> ServerMetrics::fetch() {
  std::string why;
  try {
    TextReceiver body;
    HttpTransport transport(parse_url(url_), HttpOptions{kTimeout, ca_file_, api_key_});
    const HttpReply reply = transport.get("", 0, body);
    if (reply.status == 200) return MetricsText::parse(body.text);
    if (reply.status == 404 && supposed_) return std::nullopt;
    why = "it answers with status " + std::to_string(reply.status);
  } catch (const std::exception& error) {
    why = error.what();
  }
  if (!said_why_) {
    std::fprintf(stderr, "no figures of the server's own from %s: %s\n", url_.c_str(), why.c_str());
    said_why_ = true;
  }
  return std::nullopt;
}

}  // namespace blindfuse::load
