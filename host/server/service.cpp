#include "host/server/service.h"

#include <time.h>
#include <unistd.h>

#include <atomic>
#include <cstdlib>
#include <exception>
#include <filesystem>
#include <functional>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <utility>
#include <vector>

#include "host/server/file_reloader.h"
#include "host/server/ready_file.h"
#include "host/server/routes/admin.h"
#include "host/server/service_manager.h"
#include "host/server/serving/serving_epoch.h"
#include "src/base/errors.h"
#include "src/program/amount.h"
#include "src/program/log.h"
#include "src/program/program.h"
#include "src/system/threads.h"

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

// A file that cannot be read is not a reason to stop: the server keeps what it read before.
template <typename Files>
void reload(Files* files, const char* what) {
  if (files == nullptr) return;
  try {
    files->reload();
    log_info("{} read again", what);
  } catch (const std::exception& error) {
    log_error("{} could not be read again; the server continues with the previous ones: {}", what,
              error.what());
  }
}

void log_address(const std::string& what, const std::string& url) {
  log_sentence(LogLevel::kInfo, what + url, {{"url", url}});
}

// For whoever sets the limits of what stands in front of the server.
void log_sizes(const ServingEpoch& epoch, const ApiOptions& options) {
  const QueryBodyLimits limits = query_limits(epoch, options);
  const Layout& layout = epoch.layout();
  const uint32_t keys = layout.batch ? layout.batch->keys_per_request : 1;
  const uint64_t body = limits.body_bytes_max(BodyFormat::kBinary);
  const uint64_t json_body = limits.body_bytes_max(BodyFormat::kJson);
  log_sentence(
      LogLevel::kInfo,
      fmt::format("a query{} has {} bytes, a response {}; bodies up to {} bytes, {} in JSON",
                  keys > 1 ? " for up to " + counted(keys, "key") : "", limits.query_bytes,
                  layout.response_bytes(), body, json_body),
      {{"query_bytes", limits.query_bytes},
       {"response_bytes", layout.response_bytes()},
       {"body_bytes_max", body},
       {"json_body_bytes_max", json_body}});
}

ServerOptions with_keys(ServerOptions options, std::shared_ptr<ApiKeys> api_keys) {
  options.api.api_keys = std::move(api_keys);
  return options;
}

// All that serves, from a loaded database on.
class Service {
 public:
  // on_engine_lost: what the engine cannot recover from ends the program, for whoever started it to
  // start again. Any thread.
  Service(ServiceParts parts, const ServiceOptions& options,
          const std::function<void()>& on_engine_lost)
      : tls_(parts.tls),
        api_keys_(parts.api_keys),
        kernel_record_(parts.kernel_record),
        device_calls_(parts.device_calls),
        epochs_(serve_first(parts, options, on_engine_lost)),
        server_(epochs_, metrics_, std::move(parts.socket),
                with_keys(options.server, std::move(parts.api_keys)), std::move(parts.tls)) {
    if (parts.admin_socket) {
      const AdminAccess access = access_at(*parts.admin_socket);
      admin_.emplace(epochs_, metrics_, server_.readiness(), std::move(*parts.admin_socket),
                     access);
    }
    if (parts.loader) {
      ReloadOptions reload = options.reload;
      reload.end_downloads = [this](const EpochDownloads& downloads) {
        return server_.end_downloads(downloads);
      };
      reload.on_device_lost = on_engine_lost;
      reloader_.emplace(epochs_, metrics_, options.batches, std::move(parts.loader),
                        std::move(reload));
    }
    files_.emplace([this] { read_files_again(); });
    watchdog_.emplace(
        device_calls_, &epochs_, watchdog_options(options), [this] { alive_.tell(); },
        [this, ready_file = options.ready_file] { end_hanging(ready_file); });
    log_address("listening on ", server_.url());
    // A browser cannot open a UNIX socket.
    if (options.server.api.page && server_.url().starts_with("http")) {
      log_address("page: ", server_.url() + "/");
    }
    if (admin_) log_address("admin listener on ", admin_->url());
  }

  // Says that clients are answered.
  void announce(const std::filesystem::path& ready_file) {
    if (!ready_file.empty()) ready_.emplace(ready_file, server_.url());
    notify_service_manager("READY=1");
  }

  // The epoch first: no file that cannot be read is in its way.
  void reload() {
    if (reloader_) reloader_->request();
    files_->request();
  }

  // Answers what has begun. False when a thread is left that reads files and does not end.
  bool stop() {
    server_.readiness().set_stopping();
    // At its next step, while clients get their last answers.
    if (reloader_) reloader_->tell_to_stop();
    server_.stop();
    if (admin_) admin_->stop();
    if (!files_->stop(kFilesPatience)) return false;
    if (reloader_ && !reloader_->stop(kFilesPatience)) return false;
    // While the watchdog looks: a worker whose engine hangs, in a check or with queries whose
    // clients have left, never ends.
    for (const EpochInMemory& held : epochs_.in_memory()) {
      if (held.epoch) held.epoch->scheduler().stop();
    }
    return true;
  }

 private:
  std::shared_ptr<const ServingEpoch> serve_first(ServiceParts& parts,
                                                  const ServiceOptions& options,
                                                  std::function<void()> on_engine_lost) {
    metrics_.set_failure_callback(
        [on_engine_lost = std::move(on_engine_lost)](const std::exception& error) {
          if (dynamic_cast<const DeviceLostError*>(&error) != nullptr) on_engine_lost();
        });
    // Of its first query, the server's own.
    const EngineWatchdog watchdog(
        device_calls_, nullptr, options.watchdog, [] {},
        [&] { ReadyFile::end_process(options.ready_file); });
    const auto epoch = checked_first(parts, options.batches);
    metrics_.set_kernel_record(kernel_record_);
    const std::string engine(epoch->engine().name());
    const std::string hardware(epoch->engine().hardware());
    log_sentence(LogLevel::kInfo, "engine " + engine + ", " + hardware,
                 {{"engine", engine}, {"hardware", hardware}});
    log_sizes(*epoch, options.server.api);
    return epoch;
  }

  std::shared_ptr<const ServingEpoch> checked_first(ServiceParts& parts,
                                                    const BatchLimits& limits) {
    const auto serve = [&](LoadedDatabase database) {
      return std::make_shared<const ServingEpoch>(std::move(database), limits, &metrics_);
    };
    const auto serve_without = [&](const ResourceError& error) {
      kernel_record_ = nullptr;
      return serve(parts.without_device(error));
    };
    try {
      return serve(std::move(parts.database));
    } catch (const UnfitDeviceError& error) {
      if (!parts.without_device) throw;
      return serve_without(error);
    } catch (const DeviceLostError& error) {
      if (!parts.without_device) throw;
      return serve_without(error);
    }
  }

  WatchdogOptions watchdog_options(const ServiceOptions& options) const {
    WatchdogOptions watchdog = options.watchdog;
    watchdog.judges_batches = kernel_record_ != nullptr;
    return watchdog;
  }

  // All who wait are told so, as far as they take it in time. What hangs cannot be taken away from
  // the thread that waits for it.
  [[noreturn]] void end_hanging(const std::filesystem::path& ready_file) {
    constexpr std::chrono::seconds kPatience{2};
    server_.readiness().set_stopping();
    for (const EpochInMemory& held : epochs_.in_memory()) {
      if (held.epoch) held.epoch->scheduler().abandon();
    }
    try {
      WaitableThread responses([this] { server_.stop(); });
      (void)responses.join_within(kPatience);
      ReadyFile::end_process(ready_file);  // the destructor would wait for the responses
    } catch (const std::exception&) {
      ReadyFile::end_process(ready_file);  // no thread can be started
    }
  }

  void read_files_again() const {
    notify_service_manager(reloading_state());
    blindfuse::reload(tls_.get(), "certificate and key");
    blindfuse::reload(api_keys_.get(), "API keys");
    // As when the last one is taken back; or a file was cut off.
    if (api_keys_ && api_keys_->count() == 0) {
      log_warning("the file of API keys has no keys: every request is refused");
    }
    notify_service_manager("READY=1");
  }

  const std::shared_ptr<http::TlsCertificate> tls_;
  const std::shared_ptr<ApiKeys> api_keys_;
  std::shared_ptr<const KernelRecord> kernel_record_;
  const std::shared_ptr<const DeviceCalls> device_calls_;
  ServerMetrics metrics_;
  ServedEpochs epochs_;
  DatabaseServer server_;
  std::optional<AdminServer> admin_;
  std::optional<EpochReloader> reloader_;
  std::optional<FileReloader> files_;
  std::optional<ReadyFile> ready_;
  ServiceManagerWatchdog alive_;
  std::optional<EngineWatchdog> watchdog_;
};

// Keeps a service that holds memory of a lost device: releasing it calls a driver that may not
// return. The process ends without releasing it.
void keep_for_ever(std::unique_ptr<Service> service) {
  static auto* const kept = new std::vector<std::unique_ptr<Service>>;
  kept->push_back(std::move(service));
}

}  // namespace

uint64_t service_descriptors(const ServiceOptions& options) {
  constexpr uint64_t kFiles = 64;  // of a database that is being loaded, the log, and threads
  return options.server.http.connections_max + AdminServer::kConnectionsMax + kFiles;
}

void serve_until_stopped(ServiceParts parts, const ServiceOptions& options, Signals& signals) {
  // Apart from `signals`, the callback's data outlives this call: the threads of a service that is
  // kept may still call it.
  const auto engine_lost = std::make_shared<std::atomic<bool>>(false);
  std::unique_ptr<Service> service;
  std::atomic<bool> is_announced = false;
  const auto start = [&] {
    service = std::make_unique<Service>(std::move(parts), options, [engine_lost, &signals] {
      if (!engine_lost->exchange(true)) signals.request_stop();
    });
    is_announced = true;
    service->announce(options.ready_file);
  };
  // A caller that knows that it serves has it finish; before that there is nothing to finish.
  signals.run_until_next(start, [&](int signal) {
    if (!is_announced) Signals::die_of(signal);
    signals.request_stop();
  });
  while (signals.wait() == Signals::Event::kReload) service->reload();
  // All that may wait for something that hangs: a log, a file system, an engine.
  const auto stop = [&] {
    if (!*engine_lost) log_info("shutting down; finishing requests in progress");
    notify_service_manager("STOPPING=1");
    if (!service->stop()) {
      log_warning(
          "a file system does not answer, or a new epoch is still loaded and checked; ending in "
          "the middle of it");
      ReadyFile::remove(options.ready_file);
      // What the stuck thread uses cannot be taken away from it, and ends with it.
      std::_Exit(*engine_lost ? kExitFailed : EXIT_SUCCESS);
    }
    if (*engine_lost) {
      ReadyFile::remove(options.ready_file);
      return keep_for_ever(std::move(service));
    }
    service.reset();
    log_info("stopped");
  };
  // Told again, the process ends, whatever hangs.
  signals.run_until_next(stop, [&](int) { ReadyFile::end_process(options.ready_file); });
  if (*engine_lost) throw DeviceLostError("the engine's device failed; the log above says how");
}

}  // namespace blindfuse
