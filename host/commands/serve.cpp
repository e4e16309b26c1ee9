#include "host/commands/commands.h"

#include <malloc.h>
#include <CLI/CLI.hpp>
#include <algorithm>
#include <chrono>
#include <functional>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "host/commands/engine_setup.h"
#include "host/commands/serve_options.h"
#include "host/database/directory.h"
#include "host/database/loaded_database.h"
#include "host/server/service.h"
#include "host/server/serving/serving_epoch.h"
#include "host/server/signals.h"
#include "host/system/limits.h"
#include "src/base/errors.h"
#include "src/program/log.h"
#include "src/program/printable.h"
#include "src/program/program.h"

namespace blindfuse {
namespace {

// The parts of a GPU engine that a server of this database uses in addition to the scan.
std::vector<std::string> parts_for(Mode mode) {
  if (mode == Mode::kPacked) return {"packing"};
  return {};
}

LoadedDatabase load(const ServeOptions& options, CheckedEngines& engines,
                    const LoadedDatabase* current, const std::function<void()>& on_step) {
  const auto start = std::chrono::steady_clock::now();
  const std::string& directory = options.directory;
  LoadedDatabase database =
      load_database(directory, engines.get(), current, on_step, options.service.batches.batch_max);
  engines.check_parts(parts_for(database.manifest.layout.mode()));
  check_epoch(database, options.service.batches.batch_max, options.thread_count);
  const std::chrono::duration<double> seconds = std::chrono::steady_clock::now() - start;
  const Layout& layout = database.manifest.layout;
  const bool packed = layout.mode() == Mode::kPacked;
  const uint64_t beside = packed ? layout.packing_table_bytes() : layout.hint_bytes();
  const EpochId epoch = short_epoch(database.epoch);
  const std::string reused = database.reused_bytes > 0 ? ", " + human_bytes(database.reused_bytes) +
                                                             " of them from the previous epoch"
                                                       : "";
  log_sentence(
      LogLevel::kInfo,
      fmt::format("loaded {}: epoch {}, {}, matrix {}, {} {}{}, in {:.1f} s", directory, epoch,
                  counted(layout.key_count, "key"), human_bytes(layout.matrix_bytes()),
                  packed ? "packing tables" : "hint", human_bytes(beside), reused, seconds.count()),
      {{"epoch", epoch},
       {"keys", layout.key_count},
       {"matrix_bytes", layout.matrix_bytes()},
       {"packing_table_bytes", layout.packing_table_bytes()},
       {"hint_bytes", layout.hint_bytes()},
       {"reused_bytes", database.reused_bytes},
       {"seconds", seconds.count()}});
  return database;
}

// Logs the version, and every option that was given on the command line, in the file or in the
// environment.
void log_start(const CLI::App& command) {
  nlohmann::ordered_json members = {{"version", program_version()}};
  for (const CLI::Option* option : command.get_options()) {
    std::string values;
    for (const std::string& value : option->results())
      values += (values.empty() ? "" : ",") + value;
    if (option->count() > 0) members[option->get_single_name()] = values;
  }
  log_event(LogLevel::kInfo, "starting", members);
}

std::shared_ptr<http::TlsCertificate> load_certificate(const ServeOptions& options) {
  if (options.tls_certificate.empty() != options.tls_key.empty()) {
    throw UsageError("--tls-cert and --tls-key go together: the certificate and its key");
  }
  if (options.tls_certificate.empty()) return nullptr;
  return std::make_shared<http::TlsCertificate>(options.tls_certificate, options.tls_key);
}

void check_descriptors(const ServeOptions& options) {
  const uint64_t wanted = service_descriptors(options.service);
  const uint64_t limit = raise_descriptor_limit(wanted);
  if (limit >= wanted) return;
  log_warning(
      "this process may have {} files open, too few for --connections-max {}: raise its limit to "
      "{} (LimitNOFILE of a systemd unit, ulimit -n), or allow fewer connections",
      limit, options.service.server.http.connections_max, wanted);
}

// The parts for the database in a directory. Nothing when it cannot be read: the load says why.
std::vector<std::string> parts_for(const std::string& directory) {
  try {
    return parts_for(DatabaseDirectory(directory).read_manifest().manifest.layout.mode());
  } catch (const InputError&) {
    return {};
  } catch (const ResourceError&) {
    return {};
  }
}

// Blocks of this size and more go back to the system when they are freed. The threshold that glibc
// finds by itself grows with the largest block that was freed, so that hints of later epochs come
// to lie among what is small and stays.
void give_large_blocks_back() {
  mallopt(M_MMAP_THRESHOLD, 1 << 20);
  mallopt(M_TRIM_THRESHOLD, 16 << 20);
}

void run_serve(ServeOptions& options, const CLI::App& command) {
  give_large_blocks_back();
  configure_log(options.log_format, options.log_level);
  options.resolve();
  // A faulty command line and a port in use are reported before minutes of loading.
  http::ListeningSocket socket(http::parse_listen_address(options.listen));
  std::optional<http::ListeningSocket> admin_socket;
  if (!options.admin_listen.empty()) {
    admin_socket.emplace(http::parse_listen_address(options.admin_listen));
  }
  log_start(command);
  check_descriptors(options);
  auto tls = load_certificate(options);
  auto api_keys = options.api_keys.empty() ? nullptr : std::make_shared<ApiKeys>(options.api_keys);
  // Signals are blocked before any thread of an engine or its driver starts, which would die of a
  // signal later.
  Signals signals;
  DeviceEnd end(options.service.ready_file);
  std::optional<CheckedEngines> engines;
  std::optional<LoadedDatabase> database;
  end_if_device_lost(end, [&] {
    // There is nothing to finish meanwhile, and a signal ends the program as usual.
    signals.run_until_next(
        [&] {
          engines.emplace(make_checked_engines(
              {options.engine, options.thread_count, parts_for(options.directory)},
              options.device_limit, end));
          database = load(options, *engines, nullptr, [] {});
        },
        Signals::die_of);
    ServiceParts parts{
        .database = std::move(*database),
        .socket = std::move(socket),
        .admin_socket = std::move(admin_socket),
        .tls = std::move(tls),
        .api_keys = std::move(api_keys),
        .is_device_set_aside = engines->is_device_set_aside(),
        .loader = [&](const LoadedDatabase& current, const std::function<void()>& on_step) {
          return load(options, *engines, &current, on_step);
        }};
    serve_until_stopped(std::move(parts), options.service, signals, end);
  });
}

}  // namespace

void add_serve_command(CLI::App& program) {
  auto options = std::make_shared<ServeOptions>();
  CLI::App* command = program.add_subcommand(
      "serve", "Answer private look-ups in a database directory over HTTP, until SIGTERM.");
  command->footer(
      "Examples:\n  blindfuse serve words.blindfuse --listen 127.0.0.1:8080\n"
      "  blindfuse serve words.blindfuse --tls-cert chain.pem --tls-key key.pem");
  options->add_to(*command);
  command->callback([options, command] { run_serve(*options, *command); });
}

}  // namespace blindfuse
