// Serves a database from beginning to end: the work of `blindfuse serve` after it has loaded the
// database.
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <memory>
#include <optional>

#include "host/database/loaded_database.h"
#include "host/server/database_server.h"
#include "host/server/device_end.h"
#include "host/server/http/listening_socket.h"
#include "host/server/serving/batch_scheduler.h"
#include "host/server/serving/epoch_reloader.h"
#include "host/server/signals.h"

namespace blindfuse {

struct ServiceOptions {
  BatchLimits batches;
  ServerOptions server;
  ReloadOptions reload;
  std::filesystem::path ready_file;  // empty: none
};

struct ServiceParts {
  LoadedDatabase database;
  http::ListeningSocket socket;
  std::optional<http::ListeningSocket> admin_socket;  // without one, there is no admin listener
  std::shared_ptr<http::TlsCertificate> tls;          // may be none
  std::shared_ptr<ApiKeys> api_keys;                  // may be none
  // True if the CPU computes because an earlier process has left the file of a device's fault.
  bool is_device_set_aside = false;
  EpochReloader::Loader loader;  // none: one epoch forever
};

// The number of files that the process may have to open: one for each client, and those of its
// other uses.
uint64_t service_descriptors(const ServiceOptions& options);

// Serves until one of the signals, answers requests that have begun, and returns. SIGHUP reads
// certificate and keys again, and looks for a new epoch. If an engine's device is lost while it
// serves, or a result of it is wrong, `end` ends the process: all waiting clients get status 503.
// Throws the errors of DatabaseServer's start, and DeviceLostError for the server's own first
// query.
void serve_until_stopped(ServiceParts parts, const ServiceOptions& options, Signals& signals,
                         DeviceEnd& end);

}  // namespace blindfuse
