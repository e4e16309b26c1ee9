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

using prometheus::BuildCounter;
using prometheus::BuildGauge;
using prometheus::BuildHistogram;
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

ServerMetrics::ServerMetrics()
    : requests_(BuildCounter()
                    .Name("blindfuse_http_requests_total")
                    .Help("Requests by route and status.")
                    .Register(registry_)),
      request_seconds_(BuildHistogram()
                           .Name("blindfuse_http_request_seconds")
                           .Help("From the end of a request's header to its response.")
                           .Register(registry_)),
      received_bytes_(BuildCounter()
                          .Name("blindfuse_http_received_bytes_total")
                          .Help("Bytes of requests, their headers included.")
                          .Register(registry_)
                          .Add({})),
      sent_bytes_(BuildCounter()
                      .Name("blindfuse_http_sent_bytes_total")
                      .Help("Bytes of responses that were sent, their headers included.")
                      .Register(registry_)
                      .Add({})),
      connections_(BuildGauge()
                       .Name("blindfuse_http_connections")
                       .Help("Open connections.")
                       .Register(registry_)
                       .Add({})),
      cut_connections_(BuildCounter()
                           .Name("blindfuse_http_connections_cut_total")
                           .Help("Connections that were ended before their time, by why.")
                           .Register(registry_)),
      http_memory_(BuildGauge()
                       .Name("blindfuse_http_memory_bytes")
                       .Help("Memory of request bodies that arrive, and of responses until they "
                             "are sent.")
                       .Register(registry_)),
      http_memory_max_(BuildGauge()
                           .Name("blindfuse_http_memory_max_bytes")
                           .Help("What they may have.")
                           .Register(registry_)),
      queries_(BuildCounter()
                   .Name("blindfuse_queries_total")
                   .Help("Queries by what became of them.")
                   .Register(registry_)),
      key_queries_(BuildCounter()
                       .Name("blindfuse_api_key_queries_total")
                       .Help("Queries that were answered, by the name of the API key.")
                       .Register(registry_)),
      queue_length_(BuildGauge()
                        .Name("blindfuse_queue_length")
                        .Help("Queries that wait for the engine.")
                        .Register(registry_)
                        .Add({})),
      queue_wait_(BuildHistogram()
                      .Name("blindfuse_queue_wait_seconds")
                      .Help("Time that a query waited for the engine.")
                      .Register(registry_)
                      .Add({}, kSeconds)),
      batch_queries_(BuildHistogram()
                         .Name("blindfuse_batch_queries")
                         .Help("Queries in one pass of the engine over the matrix.")
                         .Register(registry_)
                         .Add({}, kQueries)),
      batch_seconds_(
          BuildHistogram()
              .Name("blindfuse_batch_seconds")
              .Help("Time of one pass of the engine over the matrix, and of packing its "
                    "responses in the mode packed; where two overlap, that of the second "
                    "is from the end of the first.")
              .Register(registry_)
              .Add({}, kSeconds)),
      engine_failures_(
          BuildCounter()
              .Name("blindfuse_engine_failures_total")
              .Help("Batches, and checks while there are none, in which the engine failed.")
              .Register(registry_)
              .Add({})),
      device_set_aside_(BuildGauge()
                            .Name("blindfuse_gpu_set_aside")
                            .Help("1 if the processor computes because an earlier process left a "
                                  "file about a fault of the GPU; otherwise 0.")
                            .Register(registry_)
                            .Add({})),
      epoch_(BuildGauge()
                 .Name("blindfuse_epoch_info")
                 .Help("1 for the epoch that clients get, with the engine that answers it.")
                 .Register(registry_)),
      epoch_loads_(BuildCounter()
                       .Name("blindfuse_epoch_loads_total")
                       .Help("Epochs that were loaded, or refused, while serving.")
                       .Register(registry_)),
      epoch_publish_time_(BuildGauge()
                              .Name("blindfuse_epoch_publish_time_seconds")
                              .Help("When the current epoch was published, in seconds since 1970: "
                                    "the time of its manifest.json.")
                              .Register(registry_)
                              .Add({})),
      epochs_(BuildGauge()
                  .Name("blindfuse_epochs")
                  .Help("Epochs in memory: the current one, those in their grace period, and those "
                        "that requests still hold.")
                  .Register(registry_)
                  .Add({})),
      keys_(BuildGauge()
                .Name("blindfuse_keys")
                .Help("Keys of the current epoch.")
                .Register(registry_)
                .Add({})),
      database_bytes_(BuildGauge()
                          .Name("blindfuse_database_bytes")
                          .Help("Sizes of the matrices, hints or masks, and packing tables of all "
                                "epochs in memory, shared parts counted for each.")
                          .Register(registry_)),
      certificate_expiry_time_(
          BuildGauge()
              .Name("blindfuse_certificate_expiry_time_seconds")
              .Help("When the server's certificate, or one of its chain, expires, in seconds since "
                    "1970.")
              .Register(registry_)),
      resident_bytes_(BuildGauge()
                          .Name("process_resident_memory_bytes")
                          .Help("Resident memory.")
                          .Register(registry_)
                          .Add({})),
      open_descriptors_(BuildGauge()
                            .Name("process_open_fds")
                            .Help("Open file descriptors.")
                            .Register(registry_)
                            .Add({})),
      descriptors_max_(BuildGauge()
                           .Name("process_max_fds")
                           .Help("File descriptors that may be open.")
                           .Register(registry_)
                           .Add({})),
      start_time_(BuildGauge()
                      .Name("process_start_time_seconds")
                      .Help("When the process started, in seconds since 1970.")
                      .Register(registry_)
                      .Add({})),
      cpu_seconds_(BuildCounter()
                       .Name("process_cpu_seconds_total")
                       .Help("Processor time used.")
                       .Register(registry_)
                       .Add({})) {
  // There from the beginning, at 0: a counter that appears with its first event hides it from
  // rate().
  for (const QueryOutcome outcome : kOutcomes) queries_.Add({{"outcome", name_of(outcome)}});
  epoch_loads_.Add({{"result", "success"}});
  epoch_loads_.Add({{"result", "failure"}});
  BuildGauge()
      .Name("blindfuse_build_info")
      .Help("1, with the program's version.")
      .Register(registry_)
      .Add({{"version", program_version()}})
      .Set(1);
  start_time_.SetToCurrentTime();
}

void ServerMetrics::on_request(std::string_view route, int status, uint64_t received_bytes,
                               std::chrono::duration<double> time) {
  const std::string name(route);
  requests_.Add({{"route", name}, {"status", std::to_string(status)}}).Increment();
  request_seconds_.Add({{"route", name}}, kSeconds).Observe(time.count());
  received_bytes_.Increment(static_cast<double>(received_bytes));
}

void ServerMetrics::on_cut(std::string_view why, size_t count) {
  cut_connections_.Add({{"why", std::string(why)}}).Increment(static_cast<double>(count));
}

void ServerMetrics::set_http_memory(std::function<HttpMemory()> ask) {
  const std::lock_guard lock(text_mutex_);
  ask_http_memory_ = std::move(ask);
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

void ServerMetrics::set_state(const ServerState& state) {
  connections_.Set(static_cast<double>(open_connections_));
  queue_length_.Set(static_cast<double>(state.queue_length));
  epochs_.Set(static_cast<double>(state.epochs));
  keys_.Set(static_cast<double>(state.keys));
  epoch_publish_time_.Set(static_cast<double>(state.published_at));
  if (certificate_expires_at_) {
    certificate_expiry_time_.Add({}).Set(static_cast<double>(certificate_expires_at_()));
  }
  database_bytes_.Add({{"part", "matrix"}}).Set(static_cast<double>(state.matrix_bytes));
  database_bytes_.Add({{"part", "hint"}}).Set(static_cast<double>(state.hint_bytes));
  database_bytes_.Add({{"part", "packing_tables"}})
      .Set(static_cast<double>(state.packing_table_bytes));
  if (ask_http_memory_) {
    const HttpMemory memory = ask_http_memory_();
    const auto set = [](auto& family, const char* of, uint64_t bytes) {
      family.Add({{"of", of}}).Set(static_cast<double>(bytes));
    };
    set(http_memory_, "requests", memory.request_bytes);
    set(http_memory_, "responses", memory.response_bytes);
    set(http_memory_max_, "requests", memory.request_bytes_max);
    set(http_memory_max_, "responses", memory.response_bytes_max);
  }
  if (epoch_now_ == state.epoch) return;
  if (epoch_info_ != nullptr) epoch_.Remove(epoch_info_);
  epoch_info_ = &epoch_.Add({{"epoch", state.epoch}, {"engine", state.engine}});
  epoch_info_->Set(1);
  epoch_now_ = state.epoch;
}

void ServerMetrics::set_process() {
  resident_bytes_.Set(resident_bytes());
  open_descriptors_.Set(open_descriptors());
  rlimit limit{};
  if (getrlimit(RLIMIT_NOFILE, &limit) == 0) {
    descriptors_max_.Set(static_cast<double>(limit.rlim_cur));
  }
  rusage usage{};
  if (getrusage(RUSAGE_SELF, &usage) == 0) {
    const double now = seconds_of(usage.ru_utime) + seconds_of(usage.ru_stime);
    cpu_seconds_.Increment(now - cpu_seconds_.Value());
  }
}

std::string ServerMetrics::text(const ServerState& state) {
  const std::lock_guard lock(text_mutex_);
  set_state(state);
  set_process();
  return prometheus::TextSerializer().Serialize(registry_.Collect());
}

}  // namespace blindfuse
