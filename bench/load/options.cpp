#include "bench/load/options.h"

#include <CLI/CLI.hpp>
#include <cmath>

#include "client/http_transport.h"
#include "client/url.h"
#include "src/base/errors.h"

namespace blindfuse::load {
namespace {

constexpr unsigned kConnectionsMax = 60'000;

}  // namespace

void add_options(CLI::App& app, Options& options) {
  app.add_option("URL", options.url, "Address of the server: http://127.0.0.1:8080")->required();
  app.add_option("--concurrency", options.concurrency,
                 "Closed loop: connections, each of which asks again when it is answered")
      ->check(CLI::Range(1u, kConnectionsMax))
      ->capture_default_str();
  app.add_option("--rate", options.rate,
                 "Open loop: look-ups a second that arrive whether or not others are answered;\n"
                 "each one's latency counts from its arrival")
      ->check(CLI::Range(1e-3, 1e7))
      ->excludes("--concurrency");
  app.add_option("--connections", options.connections,
                 "Open loop: connections; arrivals that find none free wait")
      ->check(CLI::Range(1u, kConnectionsMax))
      ->capture_default_str()
      ->needs("--rate");
  app.add_option("--seconds", options.seconds,
                 "Length of the measurement; one without an answer is made again, for a minute")
      ->check(CLI::Range(0.1, 1e6))
      ->capture_default_str();
  app.add_option("--warmup", options.warmup_s, "Seconds of load before it")
      ->check(CLI::Range(0.0, 1e6))
      ->capture_default_str();
  app.add_option("--pool", options.pool,
                 "Queries that are made ahead; when all are sent, they are sent again")
      ->check(CLI::Range(1, 1'000'000))
      ->capture_default_str();
  app.add_option("--expect", options.expect_file,
                 "Keys to ask for and their values, KEY<tab>VALUE a line (default: random keys,\n"
                 "which are in no keyword database; any numbers of an index database)");
  app.add_option("--check-every", options.check_every,
                 "Decode about one answer in N, after the load, and compare it; 0: none")
      ->capture_default_str();
  app.add_flag("--epoch-changes", options.epoch_changes,
               "When the epoch is gone: pause, fetch the new hints, make new queries, go on");
  app.add_option("--cache", options.cache, "Folder for hints (default: a temporary one)");
  app.add_option("--api-key-file", options.api_key_file,
                 "File whose first line is sent as Authorization: Bearer");
  app.add_option("--ca-file", options.ca_file,
                 "Certificates (PEM) to trust for https (default: the system's)");
  app.add_option("--from", options.from,
                 "Address to send queries from, such as 127.0.0.2 (default: the system's choice)");
  app.add_option("--timeout", options.timeout_s, "Seconds to wait for an answer")
      ->check(CLI::Range(1, 86'400))
      ->capture_default_str();
  app.add_flag("--json", options.json, "Print one JSON object");
}

void check_options(const Options& options) {
  parse_url(options.url);
  // A range lets through text that is not a number.
  for (const double number : {options.rate.value_or(1), options.seconds, options.warmup_s}) {
    if (!std::isfinite(number)) throw UsageError("--rate, --seconds and --warmup are numbers");
  }
}

std::string api_key_of(const Options& options) {
  return options.api_key_file.empty() ? "" : read_api_key(options.api_key_file);
}

}  // namespace blindfuse::load
