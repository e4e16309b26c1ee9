#include "bench/load/report.h"

#include <fmt/format.h>

#include <cstdio>

#include "src/program/amount.h"

namespace blindfuse::load {
namespace {

using Json = nlohmann::ordered_json;

Json percentiles(const LatencyHistogram& latency) {
  if (latency.count() == 0) return nullptr;
  return {{"p50", latency.percentile_ms(0.5)},  {"p90", latency.percentile_ms(0.9)},
          {"p99", latency.percentile_ms(0.99)}, {"p999", latency.percentile_ms(0.999)},
          {"mean", latency.mean_ms()},          {"max", latency.max_ms()}};
}

// The busiest a thread of the generator can be is 1.
double cpu_share(const Options& options, const Window& window) {
  return window.seconds > 0 ? window.cpu_seconds / window.seconds / options.load_threads : 0;
}

// Every query meets the whole matrix, however many keys it asks for.
double effective_bytes_per_second(const Options& options, const Measurement& measured) {
  return measured.window.requests_per_second() * options.queries_per_request *
         measured.database.at("matrix_bytes").get<double>();
}

std::string errors_text(const Window& window) {
  std::string text;
  for (const auto& [kind, count] : window.errors) {
    text += fmt::format("{}{}: {}", text.empty() ? "" : ", ", kind, count);
  }
  return text.empty() ? "none" : text;
}

std::string load_text(const Options& options) {
  if (!options.is_open_loop())
    return fmt::format("closed loop: {} connections", options.concurrency);
  return fmt::format("open loop: {} look-ups a second arrive, over {} connections", *options.rate,
                     options.connections);
}

// A look-up is of one key.
std::string request_text(const Options& options, const Measurement& measured) {
  const nlohmann::json& database = measured.database;
  if (database.at("keys_per_request_max").get<uint32_t>() == 1) {
    return counted(options.queries_per_request, "look-up");
  }
  const std::string keys = counted(database.at("keys_per_request").get<uint32_t>(), "key");
  if (options.queries_per_request == 1) return "up to " + keys;
  return fmt::format("{} queries, each for up to {}", options.queries_per_request, keys);
}

std::string latency_text(const LatencyHistogram& latency) {
  if (latency.count() == 0) return "no answers";
  return fmt::format("p50 {:.3g}  p90 {:.3g}  p99 {:.3g}  p99.9 {:.3g}  mean {:.3g}  max {:.3g} ms",
                     latency.percentile_ms(0.5), latency.percentile_ms(0.9),
                     latency.percentile_ms(0.99), latency.percentile_ms(0.999), latency.mean_ms(),
                     latency.max_ms());
}

template <class... Arguments>
void print_row(const char* name, fmt::format_string<Arguments...> text, Arguments&&... arguments) {
  fmt::print("{:22} {}\n", name, fmt::format(text, std::forward<Arguments>(arguments)...));
}

}  // namespace

nlohmann::ordered_json report_json(const Options& options, const Measurement& measured) {
  const Window& window = measured.window;
  const bool is_open = options.is_open_loop();
  const LatencyHistogram& refused = window.refused;
  Json json = {
      {"url", options.url},
      {"loop", is_open ? "open" : "closed"},
      {"concurrency", is_open ? Json() : Json(options.concurrency)},
      {"rate", is_open ? Json(*options.rate) : Json()},
      {"connections", options.client_count()},
      {"load_threads", options.load_threads},
      {"format", options.format},
      {"queries_per_request", options.queries_per_request},
      {"seconds", window.seconds},
      {"lookups_per_second", window.lookups_per_second()},
      {"lookups", window.lookups},
      {"requests_per_second", window.requests_per_second()},
      {"requests", window.requests},
      {"left_out", window.left_out},
      {"latency_ms", percentiles(window.latency)},
      {"errors", window.errors},
      {"refused_ms", refused.count() == 0 ? Json() : Json(refused.percentile_ms(0.99))},
      {"checked", measured.checks.checked},
      {"mismatches", measured.checks.mismatches},
      {"mean_batch", measured.server.is_null() ? Json() : Json(measured.server.at("mean_batch"))},
      {"bytes_up", window.bytes_up},
      {"bytes_down", window.bytes_down},
      {"bytes_per_key", window.lookups == 0 ? Json() : Json(window.bytes_per_lookup())},
      {"reconnects", window.reconnects},
      {"resent", window.resent},
      {"waiting_at_end", window.waiting},
      {"given_up", window.given_up},
      {"epoch_changes", window.epoch_changes},
      {"paused_seconds", window.paused_seconds},
      {"idle_connections", options.idle_connections},
      {"idle_reopened", window.idle_reopened},
      {"slow_senders", options.slow_senders},
      {"slow_answered", window.slow_answered},
      {"slow_closed", window.slow_closed},
      {"generator_cpu_share", cpu_share(options, window)},
      {"effective_bytes_per_second", effective_bytes_per_second(options, measured)},
      {"server", measured.server},
  };
  json.update(Json(measured.database));
  return json;
}

void print_table(const Options& options, const Measurement& measured) {
  const Window& window = measured.window;
  print_row("load", "{}", load_text(options));
  print_row("requests of", "{}, {}", request_text(options, measured), options.format);
  print_row("measured", "{:.1f} s", window.seconds);
  print_row("look-ups a second", "{:.4g}, of a key each", window.lookups_per_second());
  print_row("requests a second", "{:.4g}", window.requests_per_second());
  print_row("effective", "{} of the matrix a second",
            human_bytes(static_cast<uint64_t>(effective_bytes_per_second(options, measured))));
  print_row("latency", "{}", latency_text(window.latency));
  print_row("errors", "{}", errors_text(window));
  if (window.refused.count() > 0) {
    print_row("refusals came back", "p99 {:.3g} ms", window.refused.percentile_ms(0.99));
  }
  if (window.waiting + window.given_up > 0) {
    print_row("waiting at the end", "{} arrivals, {} given up", window.waiting, window.given_up);
  }
  if (measured.database.at("keys_per_request_max").get<uint32_t>() > 1) {
    print_row("left out", "{}, for which no bucket was free", counted(window.left_out, "key"));
  }
  print_row("checked", "{} look-ups, {} mismatches", measured.checks.checked,
            measured.checks.mismatches);
  print_row("traffic", "{} up, {} down, {}", human_bytes(window.bytes_up),
            human_bytes(window.bytes_down), counted(window.reconnects, "reconnect"));
  if (window.lookups > 0) {
    print_row("bytes a key", "{}", human_bytes(static_cast<uint64_t>(window.bytes_per_lookup())));
  }
  if (options.idle_connections > 0) {
    print_row("idle connections", "{}, opened again {} times", options.idle_connections,
              window.idle_reopened);
  }
  if (options.slow_senders > 0) {
    print_row("slow senders", "{}: {} answered, {} refused or closed", options.slow_senders,
              window.slow_answered, window.slow_closed);
  }
  if (window.epoch_changes > 0) {
    print_row("epoch changes", "{}, paused for {:.1f} s", window.epoch_changes,
              window.paused_seconds);
  }
  print_row("generator", "{:.0f}% of a core a thread", 100 * cpu_share(options, window));
  for (const auto& [name, value] : measured.server.items()) {
    if (!value.is_null()) print_row(("server: " + name).c_str(), "{:.6g}", value.get<double>());
  }
}

bool report_trouble(const Measurement& measured) {
  for (const std::string& example : measured.checks.examples) {
    fmt::print(stderr, "mismatch: {}\n", example);
  }
  if (measured.window.requests == 0) {
    fmt::print(stderr, "nothing was answered; errors: {}\n", errors_text(measured.window));
  }
  return measured.checks.mismatches == 0 && measured.window.requests > 0;
}

}  // namespace blindfuse::load
