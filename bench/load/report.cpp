#include "bench/load/report.h"

#include <cmath>
#include <cstdio>
#include <fstream>

#include "bench/load/server_figures.h"
#include "src/base/errors.h"
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

// The busiest a process of the generator can be is 1.
double cpu_share(const Options& options, const Window& window) {
  return window.seconds > 0 ? window.cpu_seconds / window.seconds / options.processes : 0;
}

void print_row(const char* name, const std::string& value) {
  std::printf("%-22s %s\n", name, value.c_str());
}

template <class... Arguments>
std::string format(const char* pattern, Arguments... arguments) {
  const int length = std::snprintf(nullptr, 0, pattern, arguments...);
  std::string text(static_cast<size_t>(length), '\0');
  std::snprintf(text.data(), text.size() + 1, pattern, arguments...);
  return text;
}

std::string latency_text(const LatencyHistogram& latency) {
  if (latency.count() == 0) return "no answers";
  return format("p50 %.3g  p90 %.3g  p99 %.3g  p99.9 %.3g  mean %.3g  max %.3g ms",
                latency.percentile_ms(0.5), latency.percentile_ms(0.9), latency.percentile_ms(0.99),
                latency.percentile_ms(0.999), latency.mean_ms(), latency.max_ms());
}

std::string errors_text(const Window& window) {
  std::string text;
  for (const auto& [kind, count] : window.errors) {
    text += (text.empty() ? "" : ", ") + kind + ": " + std::to_string(count);
  }
  return text.empty() ? "none" : text;
}

void print_load(const Options& options) {
  const std::string processes =
      options.processes > 1 ? format(", %u processes", options.processes) : "";
  if (options.is_open_loop()) {
    print_row("load", format("open loop: %g look-ups a second arrive, over %u connections",
                             *options.rate, options.connections) +
                          processes);
  } else {
    print_row("load", format("closed loop: %u connections", options.concurrency) + processes);
  }
  print_row("requests of", counted(options.queries_per_request, "look-up") + ", " + options.format);
}

void print_disturbances(const Options& options, const Window& window) {
  if (options.idle_connections > 0) {
    print_row("idle connections", format("%u, opened again %llu times", options.idle_connections,
                                         static_cast<unsigned long long>(window.idle_reopened)));
  }
  if (options.slow_senders > 0) {
    print_row("slow senders",
              format("%u: %llu answered, %llu refused or closed", options.slow_senders,
                     static_cast<unsigned long long>(window.slow_answered),
                     static_cast<unsigned long long>(window.slow_closed)));
  }
  if (window.epoch_changes > 0) {
    print_row("epoch changes",
              format("%llu, paused for %.1f s",
                     static_cast<unsigned long long>(window.epoch_changes), window.paused_seconds));
  }
}

void print_server(const nlohmann::json& server) {
  if (server.is_null()) return print_row("server's figures", "none");
  const auto row = [&](const char* name, const char* member, const char* pattern) {
    const nlohmann::json& value = server.at(member);
    if (!value.is_null()) print_row(name, format(pattern, value.get<double>()));
  };
  row("server: queue wait", "queue_wait_ms", "%.3g ms on average");
  row("server: engine busy", "engine_seconds", "%.3g s");
  row("server: batches", "batches", "%.0f");
  row("server: mean batch", "mean_batch", "%.3g queries");
  row("server: memory", "resident_bytes", "%.4g bytes");
  row("server: open files", "open_fds", "%.0f");
}

// Numbers and words by "name" or "name.member", without lists.
void flatten(const Json& json, const std::string& prefix, Json& flat) {
  for (const auto& [name, value] : json.items()) {
    // Their members differ from run to run, and a line of CSV has to fit its head.
    if (name == "errors") {
      uint64_t sum = 0;
      for (const auto& [kind, count] : value.items()) sum += count.get<uint64_t>();
      flat[prefix + name] = sum;
    } else if (value.is_object()) {
      flatten(value, prefix + name + ".", flat);
    } else if (!value.is_array()) {
      flat[prefix + name] = value;
    }
  }
}

std::string csv_field(const Json& value) {
  if (value.is_null()) return {};
  std::string text = value.is_string() ? value.get<std::string>() : value.dump();
  if (text.find_first_of(",\"\n") == std::string::npos) return text;
  for (size_t at = text.find('"'); at != std::string::npos; at = text.find('"', at + 2)) {
    text.insert(at, 1, '"');
  }
  return "\"" + text + "\"";
}

// Columns that are there whatever there was to measure.
Json csv_columns(const Json& report) {
  Json whole = report;
  if (whole.at("server").is_null()) whole["server"] = server_figures({}, {});
  if (whole.at("latency_ms").is_null()) {
    LatencyHistogram one;
    one.add_microseconds(0);
    whole["latency_ms"] = percentiles(one);
    for (auto& value : whole["latency_ms"]) value = nullptr;
  }
  Json flat;
  flatten(whole, "", flat);
  return flat;
}

}  // namespace

nlohmann::ordered_json report_json(const Options& options, const Measurement& measured) {
  const Window& window = measured.window;
  const double rate = window.lookups_per_second();
  const bool is_open = options.is_open_loop();
  Json json = {
      {"url", options.url},
      {"loop", is_open ? "open" : "closed"},
      {"concurrency", is_open ? Json() : Json(options.concurrency)},
      {"rate", is_open ? Json(*options.rate) : Json()},
      {"connections", options.client_count()},
      {"processes", options.processes},
      {"format", options.format},
      {"queries_per_request", options.queries_per_request},
      {"seconds", window.seconds},
      {"lookups_per_second", rate},
      {"lookups", window.lookups},
      {"requests", window.requests},
      {"latency_ms", percentiles(window.latency)},
      {"errors", window.errors},
      {"refused_ms",
       window.refused.count() == 0 ? Json() : Json(window.refused.percentile_ms(0.99))},
      {"checked", measured.checks.checked},
      {"mismatches", measured.checks.mismatches},
      {"mean_batch", measured.server.is_null() ? Json() : Json(measured.server.at("mean_batch"))},
      {"bytes_up", window.bytes_up},
      {"bytes_down", window.bytes_down},
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
      {"windows", measured.throughputs},
      {"stable", measured.throughputs.size() > 1 ? Json(measured.stable) : Json()},
      {"effective_bytes_per_second", rate * measured.database.at("matrix_bytes").get<double>()},
      {"server", measured.server},
  };
  json.update(Json(measured.database));
  return json;
}

void print_table(const Options& options, const Measurement& measured) {
  const Window& window = measured.window;
  print_load(options);
  print_row("measured", format("%.1f s", window.seconds) +
                            (measured.throughputs.size() < 2
                                 ? ""
                                 : format(", after %zu others; %s", measured.throughputs.size() - 1,
                                          measured.stable ? "stable" : "NOT STABLE")));
  const double rate = window.lookups_per_second();
  print_row("look-ups a second", format("%.4g", rate));
  print_row("effective", human_bytes(static_cast<uint64_t>(
                             rate * measured.database.at("matrix_bytes").get<double>())) +
                             " of the matrix a second");
  print_row("latency", latency_text(window.latency));
  print_row("errors", errors_text(window));
  if (window.refused.count() > 0) {
    print_row("503 came back", format("p99 %.3g ms", window.refused.percentile_ms(0.99)));
  }
  if (window.waiting + window.given_up > 0) {
    print_row("waiting at the end", format("%llu arrivals, %llu given up",
                                           static_cast<unsigned long long>(window.waiting),
                                           static_cast<unsigned long long>(window.given_up)));
  }
  print_row("checked", format("%llu look-ups, %llu mismatches",
                              static_cast<unsigned long long>(measured.checks.checked),
                              static_cast<unsigned long long>(measured.checks.mismatches)));
  print_row("traffic", human_bytes(window.bytes_up) + " up, " + human_bytes(window.bytes_down) +
                           " down, " + counted(window.reconnects, "reconnect"));
  print_disturbances(options, window);
  print_row("generator", format("%.0f%% of a core a process", 100 * cpu_share(options, window)));
  print_server(measured.server);
}

bool report_trouble(const Measurement& measured) {
  for (const std::string& example : measured.checks.examples) {
    std::fprintf(stderr, "mismatch: %s\n", example.c_str());
  }
  if (measured.window.requests == 0) {
    std::fprintf(stderr, "nothing was answered; errors: %s\n",
                 errors_text(measured.window).c_str());
  }
  return measured.checks.mismatches == 0 && measured.window.requests > 0;
}

void append_csv(const std::filesystem::path& path, const nlohmann::ordered_json& report) {
  std::string head, line;
  const Json columns = csv_columns(report);
  for (const auto& [name, value] : columns.items()) {
    head += (head.empty() ? "" : ",") + name;
    line += (line.empty() ? "" : ",") + csv_field(value);
  }
  std::ifstream old(path);
  std::string old_head;
  const bool is_new = !std::getline(old, old_head);
  if (!is_new && old_head != head) {
    throw BadInput(path.string() + " has other columns; name another file with --csv");
  }
  std::ofstream file(path, std::ios::app);
  file << (is_new ? head + "\n" : "") << line << "\n";
  if (!file.flush()) throw BadInput("cannot write to " + path.string());
}

}  // namespace blindfuse::load
