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

struct Options {
  std::string url;
  // Closed loop, unless there is a rate: this many connections, each with one request after
  // another.
  unsigned concurrency = 1;
  std::optional<double> rate;  // look-ups a second, over `connections` at most
  unsigned connections = 64;
  double seconds = 10;
  double warmup_s = 2;

  size_t pool = 64;                   // queries
  std::filesystem::path expect_file;  // KEY<tab>VALUE a line
  unsigned check_every = 16;          // 0: nothing is checked
  bool epoch_changes = false;

  std::filesystem::path cache;  // of hints
  std::filesystem::path api_key_file;
  std::string ca_file;
  std::string from;  // the address to connect from; empty: the system's choice
  unsigned timeout_s = 60;
  bool json = false;

  bool is_open_loop() const { return rate.has_value(); }
  unsigned client_count() const { return is_open_loop() ? connections : concurrency; }
};

// Adds URL and every option to the command line.
void add_options(CLI::App& app, Options& options);

// Throws UsageError for numbers that are none and for addresses that cannot be.
void check_options(const Options& options);

// Returns the first line of options.api_key_file, or "" without one. Throws InputError when it has
// none.
std::string api_key_of(const Options& options);

}  // namespace blindfuse::load
