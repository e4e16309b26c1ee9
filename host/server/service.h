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
#include "host/server/http/listening_socket.h"
#include "host/server/serving/batch_scheduler.h"
#include "host/server/serving/engine_watchdog.h"
#include "host/server/serving/epoch_reloader.h"
#include "host/server/signals.h"
#include "host/system/device_calls.h"
#include "src/base/errors.h"

namespace blindfuse {

struct ServiceOptions {
  BatchLimits batches;
  ServerOptions server;
  ReloadOptions reload;
  WatchdogOptions watchdog;          // of an engine with a kernel record
  std::filesystem::path ready_file;  // empty: none
};

struct ServiceParts {
  LoadedDatabase database;
  http::ListeningSocket socket;
  std::optional<http::ListeningSocket> admin_socket;  // without one, there is no admin listener
  std::shared_ptr<http::TlsCertificate> tls;          // may be none
  std::shared_ptr<ApiKeys> api_keys;                  // may be none
  // The kernels of the device that the database's engine computes on. None if it is the CPU.
  std::shared_ptr<const KernelRecord> kernel_record = nullptr;
  // The calls that are under way on that device.
  std::shared_ptr<const DeviceCalls> device_calls = std::make_shared<const DeviceCalls>();
  EpochReloader::Loader loader;  // none: one epoch forever
  // Loads the database for another engine, without kernel record. Called once, if the device fails
  // the first query of the server's own, before anything is answered. None: that is an error.
  std::function<LoadedDatabase(const ResourceError& why)> without_device = nullptr;
};

// The number of files that the process may have to open: one for each client, and those of its
// other uses.
uint64_t service_descriptors(const ServiceOptions& options);

// Serves until one of the signals, answers requests that have begun, and returns. SIGHUP reads
// certificate and keys again, and looks for a new epoch. If an engine with a kernel record hangs,
// in a batch or while a new epoch is loaded, all waiting clients get status 503, and the process
// ends with kExitFailed. If it hangs before anything is answered, the process ends so at once.
// Throws the errors of DatabaseServer's start. Throws UnfitDeviceError if the device answers the
// server's own first query wrong and without_device is empty. Throws DeviceLostError, also after an
// orderly end, if the engine's device fails: the epochs then stay in memory, and the process is to
// end without static destructors (run_program()).
void serve_until_stopped(ServiceParts parts, const ServiceOptions& options, Signals& signals);

}  // namespace blindfuse
