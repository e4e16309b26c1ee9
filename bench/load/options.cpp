#include "bench/load/options.h"

#include <CLI/CLI.hpp>
#include <cmath>

#include "bench/load/target.h"
#include "client/key_text.h"
#include "src/arithmetic/layout.h"
#include "src/base/errors.h"

namespace blindfuse::load {
namespace {

constexpr unsigned kConnectionsMax = 60'000;

std::vector<std::string> encoding_names() {
  std::vector<std::string> names;
  for (const auto& [name, encoding] : key_encodings()) names.push_back(name);
  return names;
}

void add_load(CLI::App& app, Options& options) {
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
  app.add_option("--load-threads", options.load_threads, "Threads that share the connections")
      ->check(CLI::Range(1, 256))
      ->capture_default_str();
  app.add_option("--seconds", options.seconds,
                 "Length of the measurement; one without an answer is made again, for a minute")
      ->check(CLI::Range(0.1, 1e6))
      ->capture_default_str();
  app.add_option("--warmup", options.warmup_s, "Seconds of load before it")
      ->check(CLI::Range(0.0, 1e6))
      ->capture_default_str();
}

void add_queries(CLI::App& app, Options& options) {
  app.add_option("--format", options.format, "Bodies: binary or json")
      ->check(CLI::IsMember({"binary", "json"}))
      ->capture_default_str();
  app.add_option("--queries-per-request", options.queries_per_request, "Queries in one request")
      ->check(CLI::Range(1, 4096))
      ->capture_default_str();
  app.add_option("--keys-per-request", options.keys_per_request,
                 "Keys that each query asks for, if the database has requests for several keys\n"
                 "(default: as many as it allows)")
      ->check(CLI::Range(1u, kKeysPerRequestMax));
  app.add_option("--pool", options.pool,
                 "Queries that are made ahead; when all are sent, they are sent again")
      ->check(CLI::Range(1, 1'000'000))
      ->capture_default_str();
  app.add_option("--threads", options.threads, "Threads to make them with; 0 is one a processor")
      ->check(CLI::Range(0, 1024))
      ->capture_default_str();
  app.add_option("--seed", options.seed,
                 "Seed of the keys and arrival times. Secrets do not depend on it")
      ->capture_default_str();
  app.add_option("--expect", options.expect_file,
                 "Keys to ask for and their values, KEY<tab>VALUE a line (default: random keys,\n"
                 "which are in no keyword database; any numbers of an index database)");
  app.add_option("--key-encoding", options.key_encoding, "How keys are written: utf8, hex, base64")
      ->check(CLI::IsMember(encoding_names()))
      ->capture_default_str();
  app.add_option("--value-encoding", options.value_encoding, "How values are written")
      ->check(CLI::IsMember(encoding_names()))
      ->capture_default_str();
  app.add_option("--check-every", options.check_every,
                 "Decode about one answer in N, after the load, and compare it; 0: none")
      ->capture_default_str();
  app.add_flag("--epoch-changes", options.epoch_changes,
               "When the epoch is gone: pause, fetch the new hints, make new queries, go on");
}

void add_connections(CLI::App& app, Options& options) {
  app.add_option("--cache", options.cache, "Folder for hints (default: a temporary one)");
  app.add_option("--api-key-file", options.api_key_file,
                 "File whose first line is sent as Authorization: Bearer");
  app.add_option("--ca-file", options.ca_file,
                 "Certificates (PEM) to trust for https (default: the system's)");
  app.add_option("--from", options.from,
                 "Address to send queries from, such as 127.0.0.2 (default: the system's choice)");
  app.add_option(
      "--metrics-url", options.metrics_url,
      "The server's metrics, as http://127.0.0.1:9100/metrics or unix:/run/x.socket, for\n"
      "its own figures");
  app.add_option("--timeout", options.timeout_s, "Seconds to wait for an answer")
      ->check(CLI::Range(1, 86'400))
      ->capture_default_str();
  app.add_option(
         "--idle-connections", options.idle_connections,
         "Number of additional idle connections; they are opened again when they are closed")
      ->check(CLI::Range(0u, kConnectionsMax))
      ->capture_default_str();
  app.add_option("--slow-senders", options.slow_senders,
                 "Number of additional connections that send one request after another, slowly")
      ->check(CLI::Range(0u, kConnectionsMax))
      ->capture_default_str();
  app.add_option("--slow-bytes-per-second", options.slow_bytes_per_second,
                 "Bytes a second of each slow sender")
      ->check(CLI::Range(1, 1'000'000'000))
      ->capture_default_str();
}

// The part of `total` that is the share of one of `count`.
unsigned share(unsigned total, unsigned index, unsigned count) {
  return total / count + (index < total % count ? 1 : 0);
}

}  // namespace

void add_options(CLI::App& app, Options& options) {
  app.add_option("URL", options.url,
                 "Address of the server: http://127.0.0.1:8080, or unix:/run/x.socket")
      ->required();
  add_load(app, options);
  add_queries(app, options);
  add_connections(app, options);
  app.add_flag("--json", options.json, "Print one JSON object");
}

void check_options(const Options& options) {
  parse_target(options.url);
  if (!options.metrics_url.empty()) parse_target(options.metrics_url);
  // A range lets through text that is not a number.
  for (const double number : {options.rate.value_or(1), options.seconds, options.warmup_s}) {
    if (!std::isfinite(number)) throw UsageError("--rate, --seconds and --warmup are numbers");
  }
  if (options.load_threads > options.client_count()) {
    throw UsageError("--load-threads " + std::to_string(options.load_threads) +
                     " are more than the " + std::to_string(options.client_count()) +
                     " connections that they share; raise --concurrency (or --connections)");
  }
  if (options.queries_per_request > options.pool) {
    throw UsageError("--pool " + std::to_string(options.pool) +
                     " is not enough for one request of " +
                     std::to_string(options.queries_per_request) + " queries");
  }
}

Options share_of(const Options& all, unsigned thread) {
  Options options = all;
  options.concurrency = share(all.concurrency, thread, all.load_threads);
  options.connections = share(all.connections, thread, all.load_threads);
  if (options.rate) *options.rate /= all.load_threads;
  options.idle_connections = share(all.idle_connections, thread, all.load_threads);
  options.slow_senders = share(all.slow_senders, thread, all.load_threads);
  options.seed = all.seed + thread;
  return options;
}

}  // namespace blindfuse::load
