#include "host/server/service.h"

#include <spdlog/spdlog.h>
#include <unistd.h>

#include <atomic>
#include <cstring>
#include <memory>
#include <optional>
#include <utility>

#include "host/server/ready_file.h"
#include "host/server/serving_epoch.h"
#include "src/errors.h"
#include "src/system/program.h"

namespace blindfuse {

void serve_until_stopped(LoadedDatabase database, ListeningSocket socket,
                         const ServiceOptions& options, StopSignals& signals) {
  // What the engine cannot recover from ends the program, for whoever started it to start again.
  std::atomic<bool> engine_lost = false;
  const auto epoch = std::make_shared<const ServingEpoch>(
      std::move(database), options.batches, [&](const std::exception& error) {
        if (dynamic_cast<const EngineLost*>(&error) == nullptr) return;
        engine_lost = true;
        signals.request_stop();
      });
  spdlog::info("engine {}, {}", epoch->engine().name(), epoch->engine().hardware());

  HttpServer server(epoch, std::move(socket), options.server);
  std::optional<ReadyFile> ready;
  if (!options.ready_file.empty()) ready.emplace(options.ready_file, server.url());
  spdlog::info("listening on {}", server.url());

  if (const std::optional<int> signal = signals.wait()) {
    spdlog::info("told to stop ({}); finishing what has begun", strsignal(*signal));
  }
  signals.run_until_next([&] { server.stop(); },
                         [&](int) {
                           ready.reset();
                           _exit(kExitFailed);
                         });
  if (engine_lost) throw EngineLost("the engine's device failed; the log above says how");
  spdlog::info("stopped");
}

}  // namespace blindfuse
