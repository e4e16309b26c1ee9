#include "host/server/serving/server_metrics.h"

#include <prometheus/text_serializer.h>
#include <sys/resource.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <utility>

#include "src/base/errors.h"
#include "src/program/program.h"

namespace blindfuse {
namespace {

using prometheus::Histogram;

const Histogram::BucketBoundaries kSeconds = {0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1,
                                              0.25,  0.5,    1,     2.5,  5,     10,   30};
const Histogram::BucketBoundaries kQueries = {1, 2, 3, 4, 6, 8, 12, 16, 24, 32, 48, 64, 96, 128};

const char* name_of(QueryOutcome outcome) {
  switch (outcome) {
    case QueryOutcome::kAnswered:
      return "answered";
    case QueryOutcome::kQueueFull:
      return "queue_full";
    case QueryOutcome::kMemoryFull:
      return "memory_full";
    case QueryOutcome::kOverQuota:
      return "over_quota";
    case QueryOutcome::kTimedOut:
      return "timed_out";
    case QueryOutcome::kAbandoned:
      return "abandoned";
    case QueryOutcome::kEngineFailed:
      return "engine_failed";
    case QueryOutcome::kStopping:
      return "stopping";
  }
  return "";
}

constexpr QueryOutcome kOutcomes[] = {QueryOutcome::kAnswered,     QueryOutcome::kQueueFull,
                                      QueryOutcome::kMemoryFull,   QueryOutcome::kOverQuota,
                                      QueryOutcome::kTimedOut,     QueryOutcome::kAbandoned,
                                      QueryOutcome::kEngineFailed, QueryOutcome::kStopping};

const char* name_of(http::Cut why) {
  switch (why) {
    case http::Cut::kSlowReader:
      return "slow_reader";
    case http::Cut::kRequestMemory:
      return "request_memory";
    case http::Cut::kResponseMemory:
      return "response_memory";
    case http::Cut::kLentMemory:
      return "epochs";
    case http::Cut::kConnections:
      return "connections";
  }
  return "";
}

template <typename Number>
void set(prometheus::Gauge& gauge, Number value) {
  gauge.Set(static_cast<double>(value));
}

// Sets a counter to what has been counted elsewhere.
template <typename Number>
void raise_to(prometheus::Counter& counter, Number value) {
  counter.Increment(static_cast<double>(value) - counter.Value());
}

double seconds_of(const timeval& time) {
  return static_cast<double>(time.tv_sec) + static_cast<double>(time.tv_usec) * 1e-6;
}

double resident_bytes() {
  std::ifstream file("/proc/self/statm");
  double all = 0;
  double resident = 0;
  file >> all >> resident;
  return resident * static_cast<double>(sysconf(_SC_PAGESIZE));
}

double open_descriptors() {
  std::error_code error;
  double count = 0;
  for (std::filesystem::directory_iterator at("/proc/self/fd", error), end; !error && at != end;
       at.increment(error)) {
    ++count;
  }
  return count > 0 ? count - 1 : 0;  // without the one that was open to count them
}

}  // namespace

prometheus::Family<prometheus::Counter>& ServerMetrics::counter(const char* name,
                                                                const char* help) {
  return prometheus::BuildCounter().Name(name).Help(help).Register(registry_);
}

prometheus::Family<prometheus::Gauge>& ServerMetrics::gauge(const char* name, const char* help) {
  return prometheus::BuildGauge().Name(name).Help(help).Register(registry_);
}

prometheus::Family<prometheus::Histogram>& ServerMetrics::histogram(const char* name,
                                                                    const char* help) {
  return prometheus::BuildHistogram().Name(name).Help(help).Register(registry_);
}

ServerMetrics::ServerMetrics()
    : requests_(counter("blindfuse_http_requests_total", "Requests by route and status.")),
      request_seconds_(histogram("blindfuse_http_request_seconds",
                                 "From the end of a request's header to its response.")),
      received_bytes_(counter("blindfuse_http_received_bytes_total",
                              "Bytes of requests, their headers included.")
                          .Add({})),
      queries_(counter("blindfuse_queries_total", "Queries by outcome.")),
      key_queries_(counter("blindfuse_api_key_queries_total",
                           "Queries that were answered, by the name of the API key.")),
      queue_wait_(
          histogram("blindfuse_queue_wait_seconds", "Time that a query waited for the engine.")
              .Add({}, kSeconds)),
      batch_queries_(
          histogram("blindfuse_batch_queries", "Queries in one pass of the engine over the matrix.")
              .Add({}, kQueries)),
      batch_seconds_(
          histogram("blindfuse_batch_seconds",
                    "Time of one pass of the engine over the matrix, and of packing its responses "
                    "in the mode packed; where two overlap, that of the second is from the end of "
                    "the first.")
              .Add({}, kSeconds)),
      engine_failures_(
          counter("blindfuse_engine_failures_total",
                  "Batches, and checks while there are none, in which the engine failed.")
              .Add({})),
      device_set_aside_(gauge("blindfuse_gpu_set_aside",
                              "1 if the processor computes because an earlier process left a file "
                              "about a fault of the GPU; otherwise 0.")
                            .Add({})),
      epoch_loads_(counter("blindfuse_epoch_loads_total",
                           "Epochs that were loaded, or refused, while serving.")) {
  // The counters exist from the beginning, at 0: one that appears with its first event hides it
  // from rate().
  for (const QueryOutcome outcome : kOutcomes) queries_.Add({{"outcome", name_of(outcome)}});
  epoch_loads_.Add({{"result", "success"}});
  epoch_loads_.Add({{"result", "failure"}});
  gauge("blindfuse_build_info", "1, with the program's version.")
      .Add({{"version", program_version()}})
      .Set(1);
  gauge("process_start_time_seconds", "When the process started, in seconds since 1970.")
      .Add({})
      .SetToCurrentTime();
}

void ServerMetrics::on_request(std::string_view route, int status, uint64_t received_bytes,
                               std::chrono::duration<double> time) {
  const std::string name(route);
  requests_.Add({{"route", name}, {"status", std::to_string(status)}}).Increment();
  request_seconds_.Add({{"route", name}}, kSeconds).Observe(time.count());
  received_bytes_.Increment(static_cast<double>(received_bytes));
}

void ServerMetrics::set_http(std::function<HttpState()> ask) {
  const std::lock_guard lock(text_mutex_);
  ask_http_ = std::move(ask);
}

void ServerMetrics::on_queries(QueryOutcome outcome, size_t count, const std::string& key_name) {
  const auto number = static_cast<double>(count);
  queries_.Add({{"outcome", name_of(outcome)}}).Increment(number);
  if (outcome != QueryOutcome::kAnswered || key_name.empty()) return;
  key_queries_.Add({{"api_key", key_name}}).Increment(number);
}

void ServerMetrics::on_epoch_load(bool success) {
  epoch_loads_.Add({{"result", success ? "success" : "failure"}}).Increment();
}

void ServerMetrics::on_waited(std::chrono::duration<double> time) {
  queue_wait_.Observe(time.count());
}

void ServerMetrics::on_batch(size_t query_count, std::chrono::duration<double> time) {
  batch_queries_.Observe(static_cast<double>(query_count));
  batch_seconds_.Observe(time.count());
}

void ServerMetrics::on_failure(const std::exception& error) {
  engine_failures_.Increment();
  if (on_device_lost_ && dynamic_cast<const DeviceLostError*>(&error) != nullptr) {
    on_device_lost_(error.what());
  }
}

void ServerMetrics::set_http_state() {
  if (!ask_http_) return;
  const HttpState http = ask_http_();
  const http::Load& load = http.load;
  set(gauge("blindfuse_http_connections", "Open connections.").Add({}), load.connections);
  raise_to(counter("blindfuse_http_sent_bytes_total",
                   "Bytes of responses that were sent, their headers included.")
               .Add({}),
           load.sent_bytes);
  auto& cuts = counter("blindfuse_http_connections_cut_total",
                       "Connections that were ended before their time, by reason.");
  for (size_t i = 0; i < http::kCutCount; ++i) {
    raise_to(cuts.Add({{"why", name_of(static_cast<http::Cut>(i))}}), load.cuts[i]);
  }
  auto& memory = gauge("blindfuse_http_memory_bytes",
                       "Memory of request bodies that arrive, and of responses until they are "
                       "sent.");
  set(memory.Add({{"of", "requests"}}), load.body_bytes);
  set(memory.Add({{"of", "responses"}}), load.response_bytes);
  auto& memory_max = gauge("blindfuse_http_memory_max_bytes", "What they may have.");
  set(memory_max.Add({{"of", "requests"}}), http.request_bytes_max);
  set(memory_max.Add({{"of", "responses"}}), http.response_bytes_max);
}

void ServerMetrics::set_epochs(const ServedEpochs& epochs) {
  size_t count = 0;
  size_t queue_length = 0;
  uint64_t matrix_bytes = 0;
  uint64_t hint_bytes = 0;
  uint64_t packing_table_bytes = 0;
  for (const EpochInMemory& held : epochs.in_memory()) {
    ++count;
    hint_bytes += held.downloads->hint_bytes();
    if (!held.epoch) continue;
    queue_length += held.epoch->scheduler().waiting_count();
    matrix_bytes += held.epoch->layout().matrix_bytes();
    packing_table_bytes += held.epoch->layout().packing_table_bytes();
  }
  set(gauge("blindfuse_queue_length", "Queries that wait for the engine.").Add({}), queue_length);
  set(gauge("blindfuse_epochs",
            "Epochs in memory: the current one, those in their grace period, and those that "
            "requests still hold.")
          .Add({}),
      count);
  auto& bytes = gauge("blindfuse_database_bytes",
                      "Sizes of the matrices, hints or masks, and packing tables of all epochs in "
                      "memory, shared parts counted for each.");
  set(bytes.Add({{"part", "matrix"}}), matrix_bytes);
  set(bytes.Add({{"part", "hint"}}), hint_bytes);
  set(bytes.Add({{"part", "packing_tables"}}), packing_table_bytes);

  const auto current = epochs.current();
  const LoadedDatabase& database = current->database();
  set(gauge("blindfuse_keys", "Keys of the current epoch.").Add({}), current->layout().key_count);
  set(gauge("blindfuse_epoch_publish_time_seconds",
            "When the current epoch was published, in seconds since 1970: the time of its "
            "manifest.json.")
          .Add({}),
      database.published_at);
  if (epoch_now_ == database.epoch) return;
  auto& info = gauge("blindfuse_epoch_info",
                     "1 for the epoch that clients get, with the engine that answers it.");
  if (epoch_info_ != nullptr) info.Remove(epoch_info_);
  epoch_info_ =
      &info.Add({{"epoch", database.epoch}, {"engine", std::string(current->engine().name())}});
  epoch_info_->Set(1);
  epoch_now_ = database.epoch;
}

void ServerMetrics::set_process() {
  if (certificate_expires_at_) {
    set(gauge("blindfuse_certificate_expiry_time_seconds",
              "When the server's certificate, or one of its chain, expires, in seconds since 1970.")
            .Add({}),
        certificate_expires_at_());
  }
  set(gauge("process_resident_memory_bytes", "Resident memory.").Add({}), resident_bytes());
  set(gauge("process_open_fds", "Open file descriptors.").Add({}), open_descriptors());
  rlimit limit{};
  if (getrlimit(RLIMIT_NOFILE, &limit) == 0) {
    set(gauge("process_max_fds", "File descriptors that may be open.").Add({}), limit.rlim_cur);
  }
  rusage usage{};
  if (getrusage(RUSAGE_SELF, &usage) == 0) {
    raise_to(counter("process_cpu_seconds_total", "Processor time used.").Add({}),
             seconds_of(usage.ru_utime) + seconds_of(usage.ru_stime));
  }
}

std::string ServerMetrics::text(const ServedEpochs& epochs) {
  const std::lock_guard lock(text_mutex_);
  set_http_state();
  set_epochs(epochs);
  set_process();
  return prometheus::TextSerializer().Serialize(registry_.Collect());
}

}  // namespace blindfuse
