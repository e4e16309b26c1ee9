#include "host/server/service.h"

#include <time.h>
#include <unistd.h>

#include <atomic>
#include <cstdlib>
#include <string>
#include <utility>

#include "host/server/admin/admin_server.h"
#include "host/server/file_reloader.h"
#include "host/server/ready_file.h"
#include "host/server/routes/query_route.h"
#include "host/server/service_manager.h"
#include "host/server/serving/serving_epoch.h"
#include "src/base/errors.h"
#include "src/program/log.h"
#include "src/program/program.h"

namespace blindfuse {
namespace {

// systemd wants to know since when, by its own clock.
std::string reloading_state() {
  timespec now{};
  clock_gettime(CLOCK_MONOTONIC, &now);
  const int64_t microseconds = int64_t{now.tv_sec} * 1'000'000 + now.tv_nsec / 1000;
  return "RELOADING=1\nMONOTONIC_USEC=" + std::to_string(microseconds);
}

// For which a server that stops waits for files that it is reading.
constexpr std::chrono::seconds kFilesPatience{5};

// A file that cannot be read is no reason to stop: what was read before goes on.
template <typename Files>
void reload(Files* files, const char* what) {
  if (files == nullptr) return;
  try {
    files->reload();
    log_info("{} read again", what);
  } catch (const std::exception& error) {
    log_error("{} not read again, those before go on: {}", what, error.what());
  }
}

// For whoever sets the limits of what stands in front of the server.
void log_sizes(const ServingEpoch& epoch, const ApiOptions& options) {
  const QueryBodyLimits limits = query_limits(epoch, options.queries_per_request_max);
  log_info("a query has {} bytes, a response {}; bodies up to {} bytes, {} in JSON",
           limits.query_bytes, epoch.layout().response_bytes(),
           limits.body_bytes_max(BodyFormat::kBinary), limits.body_bytes_max(BodyFormat::kJson));
}

}  // namespace

uint64_t service_descriptors(const ServiceOptions& options) {
  constexpr uint64_t kFiles = 64;  // of a database that is being loaded, the log, and threads
  return options.server.http.connections_max + AdminServer::kConnectionsMax + kFiles;
}

void serve_until_stopped(ServiceParts parts, const ServiceOptions& options, Signals& signals) {
  ServerMetrics metrics;
  // What the engine cannot recover from ends the program, for whoever started it to start again.
  std::atomic<bool> engine_lost = false;
  metrics.set_failure_callback([&](const std::exception& error) {
    if (dynamic_cast<const DeviceLostError*>(&error) == nullptr) return;
    engine_lost = true;
    signals.request_stop();
  });
  ServedEpochs epochs(
      std::make_shared<const ServingEpoch>(std::move(parts.database), options.batches, &metrics));
  log_info("engine {}, {}", epochs.current()->engine().name(),
           epochs.current()->engine().hardware());

  log_sizes(*epochs.current(), options.server.api);

  ServerOptions server_options = options.server;
  server_options.api.api_keys = parts.api_keys;
  DatabaseServer server(epochs, metrics, std::move(parts.socket), server_options, parts.tls);
  std::optional<AdminServer> admin;
  if (parts.admin_socket) {
    const AdminAccess access =
        parts.admin_changes ? access_at(*parts.admin_socket) : AdminAccess::kMetricsAndHealth;
    admin.emplace(epochs, metrics, server.readiness(), std::move(*parts.admin_socket), access);
  }
  std::optional<EpochReloader> reloader;
  if (parts.loader) {
    ReloadOptions reload = options.reload;
    reload.end_downloads = [&](const EpochDownloads& downloads) {
      return server.end_downloads(downloads);
    };
    reloader.emplace(epochs, metrics, options.batches, std::move(parts.loader), std::move(reload));
  }
  FileReloader files([&] {
    notify_service_manager(reloading_state());
    reload(parts.tls.get(), "certificate and key");
    reload(parts.api_keys.get(), "API keys");
    if (reloader) reloader->request();
    notify_service_manager("READY=1");
  });
  std::optional<ReadyFile> ready;
  if (!options.ready_file.empty()) ready.emplace(options.ready_file, server.url());
  log_info("listening on {}", server.url());
  // A browser cannot open a UNIX socket.
  if (server_options.api.page && server.url().starts_with("http")) {
    log_info("page: {}/", server.url());
  }
  if (admin) log_info("admin listener on {}", admin->url());
  notify_service_manager("READY=1");

  for (;;) {
    const Signals::Event event = signals.wait();
    if (event != Signals::Event::kReload) {
      if (event == Signals::Event::kStop) log_info("told to stop; finishing what has begun");
      break;
    }
    files.request();
  }
  server.readiness().set_stopping();
  notify_service_manager("STOPPING=1");
  bool files_answer = true;
  signals.run_until_next(
      [&] {
        server.stop();
        if (admin) admin->stop();
        files_answer = files.stop(kFilesPatience) && (!reloader || reloader->stop(kFilesPatience));
      },
      [&](int) {
        ready.reset();
        _exit(kExitFailed);
      });
  if (!files_answer) {
    log_warning("a file system does not answer; ending in the middle of a read from it");
    ready.reset();
    // What the stuck thread uses cannot be taken away from it, and ends with it.
    std::_Exit(engine_lost ? kExitFailed : EXIT_SUCCESS);
  }
  if (engine_lost) throw DeviceLostError("the engine's device failed; the log above says how");
  log_info("stopped");
}

}  // namespace blindfuse
