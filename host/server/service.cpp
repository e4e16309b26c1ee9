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

#include "host/server/routes/admin.h"
#include "host/server/service_manager.h"
#include "host/server/serving/epoch_reloader.h"
#include "host/server/serving/serving_epoch.h"
#include "src/base/errors.h"
#include "src/program/log.h"
#include "src/program/printable.h"
#include "src/program/program.h"
#include "src/system/threads.h"

namespace blindfuse {
namespace {

// systemd needs the time by its own clock.
std::string reloading_state() {
  timespec now{};
  clock_gettime(CLOCK_MONOTONIC, &now);
  const int64_t microseconds = int64_t{now.tv_sec} * 1'000'000 + now.tv_nsec / 1000;
  return "RELOADING=1\nMONOTONIC_USEC=" + std::to_string(microseconds);
}

// A server that stops waits this long for files that it is reading.
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

// Logs the sizes by which an operator sets the limits of a proxy.
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

// Runs the parts of a server from a loaded database on.
class Service {
 public:
  Service(ServiceParts parts, const ServiceOptions& options, DeviceEnd& end)
      : end_(end),
        tls_(parts.tls),
        api_keys_(parts.api_keys),
        epochs_(serve_first(parts, options)),
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
      reload.on_device_lost = [this](const std::string& what) { end_.end(what); };
      reloader_.emplace(epochs_, metrics_, options.batches, std::move(parts.loader),
                        std::move(reload));
    }
    files_.emplace([this] { read_files_again(); });
    end_.set_service([this] { withhold_answers(); }, [this] { server_.stop(); });
    log_address("listening on ", server_.url());
    // A browser cannot open a UNIX socket.
    if (options.server.api.page && server_.url().starts_with("http")) {
      log_address("page: ", server_.url() + "/");
    }
    if (admin_) log_address("admin listener on ", admin_->url());
  }

  ~Service() { end_.set_service({}, {}); }
  Service(const Service&) = delete;
  Service& operator=(const Service&) = delete;

  // Says that clients are answered.
  void announce(const std::filesystem::path& ready_file) {
    if (!ready_file.empty()) ready_.emplace(ready_file, server_.url());
    notify_service_manager("READY=1");
  }

  // The epoch comes first, so that no file that cannot be read delays it.
  void reload() {
    if (reloader_) reloader_->request();
    files_->request();
  }

  // Answers requests that have begun. Returns false when a thread is left that reads files and does
  // not end.
  bool stop() {
    server_.readiness().set_stopping();
    // The reloader stops at its next step, while clients get their last answers.
    if (reloader_) reloader_->tell_to_stop();
    server_.stop();
    if (admin_) admin_->stop();
    if (!files_->stop(kFilesPatience)) return false;
    if (reloader_ && !reloader_->stop(kFilesPatience)) return false;
    // The queues stop while the device's calls are watched: a worker whose engine hangs, in a check
    // or with queries whose clients have left, never ends.
    for (const EpochInMemory& held : epochs_.in_memory()) {
      if (held.epoch) held.epoch->scheduler().stop();
    }
    return true;
  }

 private:
  std::shared_ptr<const ServingEpoch> serve_first(ServiceParts& parts,
                                                  const ServiceOptions& options) {
    metrics_.set_device_lost_callback([this](const std::string& what) { end_.end(what); });
    metrics_.set_device_set_aside(parts.is_device_set_aside);
    auto epoch =
        std::make_shared<const ServingEpoch>(std::move(parts.database), options.batches, &metrics_);
    const std::string engine(epoch->engine().name());
    const std::string hardware(epoch->engine().hardware());
    log_sentence(LogLevel::kInfo, "engine " + engine + ", " + hardware,
                 {{"engine", engine}, {"hardware", hardware}});
    log_sizes(*epoch, options.server.api);
    return epoch;
  }

  // Gives all clients that wait for the device status 503, whatever it has computed.
  void withhold_answers() {
    server_.readiness().set_stopping();
    for (const EpochInMemory& held : epochs_.in_memory()) {
      if (held.epoch) held.epoch->scheduler().abandon();
    }
  }

  void read_files_again() const {
    notify_service_manager(reloading_state());
    blindfuse::reload(tls_.get(), "certificate and key");
    blindfuse::reload(api_keys_.get(), "API keys");
    // The last key may have been taken back, or the file cut off.
    if (api_keys_ && api_keys_->count() == 0) {
      log_warning("the file of API keys has no keys: every request is refused");
    }
    notify_service_manager("READY=1");
  }

  DeviceEnd& end_;
  const std::shared_ptr<http::TlsCertificate> tls_;
  const std::shared_ptr<ApiKeys> api_keys_;
  ServerMetrics metrics_;
  ServedEpochs epochs_;
  DatabaseServer server_;
  std::optional<AdminServer> admin_;
  std::optional<EpochReloader> reloader_;
  std::optional<FileReloader> files_;
  std::optional<ReadyFile> ready_;
  ServiceManagerWatchdog alive_;
};

}  // namespace

uint64_t service_descriptors(const ServiceOptions& options) {
  constexpr uint64_t kFiles = 64;  // of a database that is being loaded, the log, and threads
  return options.server.http.connections_max + AdminServer::kConnectionsMax + kFiles;
}

void serve_until_stopped(ServiceParts parts, const ServiceOptions& options, Signals& signals,
                         DeviceEnd& end) {
  std::optional<Service> service;
  std::atomic<bool> is_announced = false;
  const auto start = [&] {
    service.emplace(std::move(parts), options, end);
    is_announced = true;
    service->announce(options.ready_file);
  };
  // A signal that comes after the announcement lets the service finish its requests. Before that
  // there is nothing to finish.
  signals.run_until_next(start, [&](int signal) {
    if (!is_announced) Signals::die_of(signal);
    signals.request_stop();
  });
  while (signals.wait() == Signals::Event::kReload) service->reload();
  // The function has all steps that may wait for something that hangs: a log, a file system, an
  // engine.
  const auto stop = [&] {
    log_info("shutting down; finishing requests in progress");
    notify_service_manager("STOPPING=1");
    if (!service->stop()) {
      log_warning(
          "a file system does not answer, or a new epoch is still loaded and checked; ending in "
          "the middle of it");
      ReadyFile::remove(options.ready_file);
      // The stuck thread uses objects that cannot be taken away from it, so it ends with them.
      std::_Exit(EXIT_SUCCESS);
    }
    service.reset();
    log_info("stopped");
  };
  // A second signal ends the process, whatever hangs.
  signals.run_until_next(stop, [&](int) { ReadyFile::end_process(options.ready_file); });
}

}  // namespace blindfuse
