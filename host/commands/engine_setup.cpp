#include "host/commands/engine_setup.h"

#include <CLI/CLI.hpp>
#include <optional>
#include <string>
#include <utility>

#include "host/engines/canary_response.h"
#include "src/arithmetic/second_level_spec.h"
#include "src/program/log.h"
#include "src/protocol/public_polynomials.h"
#include "src/system/random.h"

namespace blindfuse {

void DeviceLimit::add_to(CLI::App& command) {
  constexpr uint64_t kDaySeconds = 86'400;
  command
      .add_option("--gpu-batch-seconds-max", seconds_,
                  "How long a GPU may take for a batch, or another call. After this time it counts "
                  "as hung, and the program ends with status 1")
      ->check(CLI::Range(uint64_t{1}, kDaySeconds))
      ->capture_default_str();
}

CheckedEngines make_checked_engines(EngineRequest request, const DeviceLimit& limit,
                                    DeviceEnd& end) {
  request.call_limit = limit.time();
  request.on_hang = [&end, seconds = limit.time().count()](const std::string& what) {
    end.end(what + " in " + std::to_string(seconds) + " s");
  };
  CheckedEngines engines(request,
                         {.on_info = [](const std::string& text) { log_info("{}", text); },
                          .on_warning = [](const std::string& text) { log_warning("{}", text); }});
  end.set_device(engines.device());
  return engines;
}

void check_epoch(LoadedDatabase& database, size_t batch_max, unsigned thread_count) {
  if (!database.canary) return;
  const Layout& layout = database.manifest.layout;
  std::optional<SecondLevelPolynomials> polynomials;
  SecondLevelSpec second;
  if (layout.second) {
    polynomials.emplace(layout, ring::PublicPolynomials(database.manifest.seed));
    second = polynomials->spec(layout);
  }
  complete_canary(*database.canary, layout, database.packing_tables, thread_count, fill_from_system,
                  polynomials ? &second : nullptr);
  database.engine->check_kernels(*database.canary, batch_max);
}

}  // namespace blindfuse
