// The options of a measurement.
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>

namespace CLI {
class App;
}

namespace blindfuse::load {

enum class BodyFormat { kBinary, kJson };

struct Options {
  std::string url;
  // Closed loop, unless there is a rate: this many connections, each with one request after
  // another.
  unsigned concurrency = 1;
  std::optional<double> rate;  // look-ups a second, over `connections` at most
  unsigned connections = 64;
  unsigned load_threads = 1;

  double seconds = 10;
  double warmup_s = 2;

  std::string format = "binary";
  unsigned queries_per_request = 1;
  std::optional<uint32_t> keys_per_request;  // of each query; else as many as it can ask for
  size_t pool = 64;                          // queries
  uint64_t seed = 1;
  unsigned threads = 0;  // to make them with

  std::filesystem::path expect_file;
  std::string key_encoding = "utf8";
  std::string value_encoding = "utf8";
  unsigned check_every = 16;  // 0: nothing is checked
  bool epoch_changes = false;

  std::filesystem::path cache;  // empty: a temporary one
  std::filesystem::path api_key_file;
  std::string ca_file;
  std::string from;         // the address to connect from; empty: the system's choice
  std::string metrics_url;  // empty: no figures of the server's own
  unsigned timeout_s = 60;

  unsigned idle_connections = 0;
  unsigned slow_senders = 0;
  unsigned slow_bytes_per_second = 1000;

  bool json = false;

  bool is_open_loop() const { return rate.has_value(); }
  BodyFormat body_format() const {
    return format == "json" ? BodyFormat::kJson : BodyFormat::kBinary;
  }
  // Connections that carry look-ups.
  unsigned client_count() const { return is_open_loop() ? connections : concurrency; }
};

// Adds URL and every option to the command line.
void add_options(CLI::App& app, Options& options);

// Throws UsageError for options that contradict each other.
void check_options(const Options& options);

// The share of one of the threads: its connections and rate, and a seed of its own.
Options share_of(const Options& all, unsigned thread);

}  // namespace blindfuse::load
