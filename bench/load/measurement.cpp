#include "bench/load/measurement.h"

#include <fmt/format.h>
#include <sys/resource.h>

namespace blindfuse::load {
namespace {

using Json = nlohmann::ordered_json;

// A measurement without an answer is repeated for this long: on a busy machine the first answer may
// come late.
constexpr std::chrono::seconds kFirstAnswerMax{60};

double cpu_seconds() {
  rusage usage{};
  getrusage(RUSAGE_SELF, &usage);
  const auto seconds = [](const timeval& time) {
    return static_cast<double>(time.tv_sec) + static_cast<double>(time.tv_usec) * 1e-6;
  };
  return seconds(usage.ru_utime) + seconds(usage.ru_stime);
}

// A connection is a descriptor.
void raise_descriptor_limit() {
  rlimit limit{};
  getrlimit(RLIMIT_NOFILE, &limit);
  limit.rlim_cur = limit.rlim_max;
  setrlimit(RLIMIT_NOFILE, &limit);
}

Json percentiles(const Latencies& latency) {
  if (latency.count() == 0) return nullptr;
  Json json;
  for (const auto& [name, share] :
       {std::pair{"p50", 0.5}, {"p90", 0.9}, {"p99", 0.99}, {"p999", 0.999}, {"max", 1.0}}) {
    json[name] = latency.percentile_ms(share);
  }
  return json;
}

Json facts_of(const QueryPool& pool) {
  const Layout& layout = pool.database().layout();
  return {{"kind", layout.kind == DatabaseKind::kKeyword ? "keyword" : "index"},
          {"key_count", layout.key_count},
          {"keys_per_request", pool.keys_per_query()},
          {"matrix_bytes", layout.matrix_bytes()},
          {"query_bytes", layout.query_bytes()},
          {"response_bytes", layout.response_bytes()}};
}

Json figures_of(const Options& options, const Window& window, const CheckResult& checks) {
  const auto per_second = [&](uint64_t count) {
    return window.seconds > 0 ? static_cast<double>(count) / window.seconds : 0;
  };
  return {{"loop", options.is_open_loop() ? "open" : "closed"},
          {"rate", options.rate ? Json(*options.rate) : Json()},
          {"connections", options.client_count()},
          {"seconds", window.seconds},
          {"lookups_per_second", per_second(window.lookups)},
          {"lookups", window.lookups},
          {"requests_per_second", per_second(window.requests)},
          {"requests", window.requests},
          {"left_out", window.left_out},
          {"latency_ms", percentiles(window.latency)},
          {"errors", window.errors},
          {"checked", checks.checked},
          {"mismatches", checks.mismatches},
          {"bytes_up", window.bytes_up},
          {"bytes_down", window.bytes_down},
          {"waiting_at_end", window.waiting},
          {"epoch_changes", window.epoch_changes},
          {"paused_seconds", window.paused_seconds}};
}

}  // namespace

Measurement measure(const Options& options) {
  raise_descriptor_limit();
  Measurement measured;
  Load load(options);
  const Json facts = facts_of(load.pool());
  const auto seconds = [](double count) {
    return std::chrono::duration_cast<Load::Clock::duration>(std::chrono::duration<double>(count));
  };
  load.start();
  auto boundary = Load::Clock::now() + seconds(options.warmup_s);
  load.sleep_until(boundary);
  const auto give_up = boundary + kFirstAnswerMax;
  double cpu = 0;
  do {
    load.take_window();
    const double before = cpu_seconds();
    boundary += seconds(options.seconds);
    load.sleep_until(boundary);
    measured.window = load.take_window();
    cpu = cpu_seconds() - before;
  } while (measured.window.requests == 0 && Load::Clock::now() < give_up);
  measured.checks = load.stop();
  measured.figures = figures_of(options, measured.window, measured.checks);
  // At 1 the generator is the limit, and not the server.
  measured.figures["generator_cpu_share"] = cpu / measured.window.seconds;
  measured.figures.update(facts);
  return measured;
}

bool report_trouble(const Measurement& measured) {
  for (const std::string& example : measured.checks.examples) {
    fmt::print(stderr, "mismatch: {}\n", example);
  }
  if (measured.window.requests == 0) {
    fmt::print(stderr, "nothing was answered; errors: {}\n", Json(measured.window.errors).dump());
  }
  return measured.checks.mismatches == 0 && measured.window.requests > 0;
}

}  // namespace blindfuse::load
