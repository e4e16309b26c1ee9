// A database served from beginning to end: what `blindfuse serve` does once it is loaded.
#pragma once

#include <filesystem>

#include "host/database/loaded_database.h"
#include "host/server/batch_scheduler.h"
#include "host/server/http_server.h"
#include "host/server/listening_socket.h"
#include "host/server/stop_signals.h"

namespace blindfuse {

struct ServiceOptions {
  BatchLimits batches;
  ServerOptions server;
  std::filesystem::path ready_file;  // empty: none
};

// Serves until one of the signals, answers what has begun, and returns. Throws EngineLost, likewise
// after an orderly end, when the engine's device fails; what HttpServer throws at its start.
void serve_until_stopped(LoadedDatabase database, ListeningSocket socket,
                         const ServiceOptions& options, StopSignals& signals);

}  // namespace blindfuse
