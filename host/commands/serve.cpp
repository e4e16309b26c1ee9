#include "host/commands/serve.h"

#include <spdlog/spdlog.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <chrono>
#include <memory>
#include <optional>
#include <string>
#include <utility>

#include "host/database/loaded_database.h"
#include "host/engine_factory.h"
#include "host/server/service.h"
#include "host/server/stop_signals.h"
#include "src/system/amount.h"

namespace blindfuse {
namespace {

struct ServeCommand {
  std::string directory;
  std::string listen = "127.0.0.1:8080";
  std::string engine = "auto";
  unsigned thread_count = 0;
  ServiceOptions service;
};

LoadedDatabase load(const ServeCommand& options) {
  const auto start = std::chrono::steady_clock::now();
  const std::string& directory = options.directory;
  LoadedDatabase database = load_database(directory, [&](uint64_t rows, uint64_t columns) {
    return make_engine(options.engine, rows, columns, options.thread_count);
  });
  const std::chrono::duration<double> seconds = std::chrono::steady_clock::now() - start;
  const Layout& layout = database.manifest.layout;
  spdlog::info("loaded {}: {}, matrix {}, hint {}, in {:.1f} s", directory,
               counted(layout.key_count, "key"), human_bytes(layout.matrix_bytes()),
               human_bytes(layout.hint_bytes()), seconds.count());
  spdlog::info("epoch {}", database.epoch);
  return database;
}

void run_serve(const ServeCommand& options) {
  // What is wrong with the command line, and a port in use, is said before minutes of loading.
  ListeningSocket socket(parse_listen_address(options.listen));
  // Before any thread starts, an engine's or its driver's, which would die of a signal later.
  StopSignals signals;
  check_engine_name(options.engine);
  std::optional<LoadedDatabase> database;
  // Meanwhile there is nothing to finish, and a signal ends the program as usual.
  signals.run_until_next([&] { database = load(options); }, StopSignals::die_of);
  serve_until_stopped(std::move(*database), std::move(socket), options.service, signals);
}

}  // namespace

void add_serve_command(CLI::App& program) {
  auto options = std::make_shared<ServeCommand>();
  CLI::App* command = program.add_subcommand(
      "serve", "Answer private look-ups in a database directory over HTTP, until SIGTERM");
  command->add_option("directory", options->directory, "The database directory")->required();
  command
      ->add_option("--listen", options->listen,
                   "HOST:PORT to listen on, [ADDRESS]:PORT for IPv6; port 0 is any that is free")
      ->capture_default_str();
  command
      ->add_option("--engine", options->engine,
                   "auto, cpu, cpu:KERNEL, cuda, or cuda:KERNEL, with @DEVICE or without")
      ->capture_default_str();
  command
      ->add_option("--threads", options->thread_count,
                   "Threads of the engine; 0 is one a processor")
      ->check(CLI::Range(0u, 1024u))
      ->capture_default_str();
  command
      ->add_option("--http-threads", options->service.server.http_threads,
                   "Requests that are read or answered at the same time")
      ->check(CLI::Range(1u, 4096u))
      ->capture_default_str();
  command
      ->add_option("--batch-max", options->service.batches.batch_max,
                   "Queries that the engine answers in one pass over the database")
      ->check(CLI::Range(1u, 4096u))
      ->capture_default_str();
  command
      ->add_option("--queue-max", options->service.batches.queue_max,
                   "Queries that may wait for the engine; more get status 503")
      ->check(CLI::Range(1u, 65'536u))
      ->capture_default_str();
  const CLI::Option* per_request =
      command
          ->add_option("--queries-per-request-max", options->service.server.queries_per_request_max,
                       "Queries in one request; at most --queue-max")
          ->check(CLI::Range(1u, 65'536u))
          ->capture_default_str();
  command->add_option("--ready-file", options->service.ready_file,
                      "File to write the server's URL to once it accepts requests, and to remove "
                      "at exit");
  command->callback([options, per_request] {
    // The default gives way to a short queue; what was asked for does not.
    uint64_t& queries = options->service.server.queries_per_request_max;
    if (per_request->empty())
      queries = std::min<uint64_t>(queries, options->service.batches.queue_max);
    run_serve(*options);
  });
}

}  // namespace blindfuse
