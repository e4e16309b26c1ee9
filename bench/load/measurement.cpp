#include "bench/load/measurement.h"

#include <sys/resource.h>

#include <algorithm>
#include <optional>

#include "bench/load/load.h"
#include "bench/load/server_figures.h"
#include "bench/load/temporary_folder.h"
#include "src/base/errors.h"

namespace blindfuse::load {
namespace {

// How long a measurement without an answer is made again: on a busy machine the first answer may
// come late.
constexpr std::chrono::seconds kFirstAnswerMax{60};

// A connection is a descriptor.
void raise_descriptor_limit(const Options& options) {
  const rlim_t needed =
      options.client_count() + options.idle_connections + options.slow_senders + 64;
  rlimit limit{};
  getrlimit(RLIMIT_NOFILE, &limit);
  if (limit.rlim_cur >= needed) return;
  limit.rlim_cur = std::min(needed, limit.rlim_max);
  setrlimit(RLIMIT_NOFILE, &limit);
  if (limit.rlim_cur < needed) {
    throw UsageError("these connections need " + std::to_string(needed) +
                     " open files, and the system allows " + std::to_string(limit.rlim_cur) +
                     "; raise ulimit -n");
  }
}

}  // namespace

Measurement measure(const Options& given) {
  Options options = given;
  raise_descriptor_limit(options);
  std::optional<TemporaryFolder> temporary;
  if (options.cache.empty()) options.cache = temporary.emplace().path();
  ServerMetrics metrics(options);

  Measurement measured;
  Load load(options, parse_target(options.url));
  measured.database = load.database_facts();
  const auto seconds = [](double count) {
    return std::chrono::duration_cast<Load::Clock::duration>(std::chrono::duration<double>(count));
  };
  load.start();
  auto boundary = Load::Clock::now() + seconds(options.warmup_s);
  load.sleep_until(boundary);
  const auto give_up = boundary + kFirstAnswerMax;
  do {
    const auto before = metrics.fetch();
    load.take_window();
    boundary += seconds(options.seconds);
    load.sleep_until(boundary);
    measured.window = load.take_window();
    const auto after = metrics.fetch();
    measured.server = before && after ? server_figures(*before, *after) : nlohmann::json();
  } while (measured.window.requests == 0 && Load::Clock::now() < give_up);
  measured.checks = load.stop();
  return measured;
}

}  // namespace blindfuse::load
