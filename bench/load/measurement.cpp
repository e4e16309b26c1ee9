#include "bench/load/measurement.h"

#include <sys/resource.h>

#include <cmath>
#include <cstdio>
#include <cstdlib>

#include "bench/load/interruption.h"
#include "bench/load/served_database.h"
#include "bench/load/server_figures.h"
#include "bench/load/worker_processes.h"
#include "client/url.h"
#include "src/base/errors.h"

namespace blindfuse::load {
namespace {

// For every process to hear of the start before it comes.
constexpr std::chrono::milliseconds kStartAhead{50};
// How long windows in which nothing is answered are followed by others.
constexpr std::chrono::seconds kFirstAnswerMax{60};

class TemporaryFolder {
 public:
  TemporaryFolder() {
    std::string name = std::filesystem::temp_directory_path() / "blindfuse-load-XXXXXX";
    if (mkdtemp(name.data()) == nullptr) {
      throw BadInput("cannot make a folder in " + std::filesystem::temp_directory_path().string() +
                     "; name one for the hints with --cache");
    }
    path_ = name;
  }
  ~TemporaryFolder() {
    std::error_code ignored;
    std::filesystem::remove_all(path_, ignored);
  }
  TemporaryFolder(const TemporaryFolder&) = delete;
  TemporaryFolder& operator=(const TemporaryFolder&) = delete;

  const std::filesystem::path& path() const { return path_; }

 private:
  std::filesystem::path path_;
};

// A connection is a descriptor.
void raise_descriptor_limit(const Options& options) {
  const Options share = share_of(options, 0);
  const rlim_t needed = share.client_count() + share.idle_connections + share.slow_senders + 64;
  rlimit limit{};
  getrlimit(RLIMIT_NOFILE, &limit);
  if (limit.rlim_cur >= needed) return;
  limit.rlim_cur = std::min(needed, limit.rlim_max);
  setrlimit(RLIMIT_NOFILE, &limit);
  if (limit.rlim_cur < needed) {
    throw Misuse("these connections need " + std::to_string(needed) +
                 " open files in a process, and the system allows " +
                 std::to_string(limit.rlim_cur) + "; take more --processes, or raise ulimit -n");
  }
}

bool agree(double a, double b, double percent) {
  return std::abs(a - b) <= std::max(a, b) * percent / 100;
}

void measure_windows(const Options& options, WorkerProcesses& workers, ServerMetrics& metrics,
                     Measurement& measured) {
  const auto seconds = [](double count) {
    return std::chrono::duration_cast<Clock::duration>(std::chrono::duration<double>(count));
  };
  const Clock::time_point start = Clock::now() + kStartAhead;
  workers.start_at(start);
  Clock::time_point boundary = start + seconds(options.warmup_s);
  workers.sleep_until(boundary);
  auto before = metrics.fetch();
  const unsigned windows_max = options.until_stable ? options.windows_max : 1;
  // A window without an answer measures nothing: on a busy machine the first may come later.
  const Clock::time_point give_up = boundary + kFirstAnswerMax;
  while (measured.throughputs.size() < windows_max && !measured.stable) {
    boundary += seconds(options.seconds);
    workers.sleep_until(boundary);
    auto after = metrics.fetch();
    measured.window = workers.next_window();
    measured.server = before && after ? server_figures(*before, *after) : nlohmann::json();
    before = std::move(after);
    const double now = measured.window.lookups_per_second();
    if (now == 0 && Clock::now() < give_up) continue;
    measured.stable = !measured.throughputs.empty() && now > 0 &&
                      agree(measured.throughputs.back(), now, options.stable_percent);
    measured.throughputs.push_back(now);
  }
}

}  // namespace

Measurement measure(const Options& given) {
  Options options = given;
  KeySource keys(options);
  const std::string api_key = api_key_of(options);
  raise_descriptor_limit(options);
  std::optional<TemporaryFolder> temporary;
  if (options.cache.empty()) options.cache = temporary.emplace().path();
  const bool supposed = options.metrics_url.empty();
  ServerMetrics metrics(supposed ? parse_url(options.url).text() + "/metrics" : options.metrics_url,
                        supposed, options.ca_file, api_key);

  catch_interruptions();
  Measurement measured;
  WorkerProcesses workers(options, keys, api_key);
  measured.database = workers.wait_until_ready();
  measure_windows(options, workers, metrics, measured);
  measured.checks = workers.stop();
  return measured;
}

}  // namespace blindfuse::load
