// Reads files again, and loads and serves new epochs of a database directory, while the server
// runs.
#pragma once

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <filesystem>
#include <functional>
#include <mutex>
#include <string>

#include "host/database/loaded_database.h"
#include "host/server/serving/batch_scheduler.h"
#include "host/server/serving/server_metrics.h"
#include "host/server/serving/serving_epoch.h"
#include "src/system/threads.h"

namespace blindfuse {

// Reads files again on request. Has a thread of its own: a file system that hangs holds up no other
// work, and no signals.
class FileReloader {
 public:
  // reload: reads the files again, and throws nothing. Throws ResourceError if no thread can be
  // started.
  explicit FileReloader(std::function<void()> reload);
  // Stops, and waits for the end.
  ~FileReloader();
  FileReloader(const FileReloader&) = delete;
  FileReloader& operator=(const FileReloader&) = delete;

  // Reads the files again. If that is under way, reads them another time after it. Any thread.
  void request();
  // Finishes a reload that has begun. Returns false if it has not ended after that time: a file
  // cannot be read, and the objects that `reload` refers to stay in use.
  bool stop(std::chrono::milliseconds patience);

 private:
  void work();
  void tell_to_stop();

  const std::function<void()> reload_;
  std::mutex mutex_;
  std::condition_variable changed_;
  bool requested_ = false;
  bool stopping_ = false;
  WaitableThread worker_;
};

struct ReloadOptions {
  using Clock = std::function<std::chrono::steady_clock::time_point()>;

  std::filesystem::path directory;
  std::chrono::seconds grace{60};  // for which an epoch is served after it has been replaced
  std::chrono::milliseconds watch_interval{2'000};  // of looking at the manifest; 0: never
  size_t epochs_max = 3;  // in memory, one that is being loaded included; at least 2
  // Ends the downloads of an epoch that is to make room, and returns their number.
  std::function<size_t(const EpochDownloads&)> end_downloads = [](const EpochDownloads&) {
    return size_t{0};
  };
  // Called by the reloader's thread if the device failed for good while an epoch was loaded. The
  // epochs in service are on it, too.
  std::function<void(const std::string& what)> on_device_lost = [](const std::string&) {};
  Clock clock = std::chrono::steady_clock::now;
};

class EpochReloader {
 public:
  // Loads the directory's current epoch, with the help of the epoch in service. Regularly calls
  // on_step, which throws to abort the load.
  using Loader = std::function<LoadedDatabase(const LoadedDatabase& current,
                                              const std::function<void()>& on_step)>;

  // All objects given by reference outlive this one.
  EpochReloader(ServedEpochs& epochs, ServerMetrics& metrics, const BatchLimits& limits,
                Loader loader, ReloadOptions options);
  // Stops, and waits for the end.
  ~EpochReloader();
  EpochReloader(const EpochReloader&) = delete;
  EpochReloader& operator=(const EpochReloader&) = delete;

  // Looks for an epoch now, even if the manifest's file has not changed. Any thread.
  void request();
  // Returns once all that was requested so far has been looked for, or the reloader stops. The
  // constructor requests a first look. Any thread but the reloader's.
  void wait_until_idle();
  // Aborts a load that is under way at its next step, and begins no other. Returns at once.
  void tell_to_stop();
  // Tells the reloader to stop, and waits for its end. Returns false if it has not ended after that
  // long: a file of the database cannot be read, and everything given by reference stays in use.
  bool stop(std::chrono::milliseconds patience);

 private:
  void watch();
  void look_around(std::chrono::steady_clock::time_point now, bool requested, bool look);
  void retire(std::chrono::steady_clock::time_point now);
  std::string manifest_identity() const;
  void load();
  void take_signature(const ServingEpoch& current);
  void make_room();

  ServedEpochs& epochs_;
  ServerMetrics& metrics_;
  const BatchLimits limits_;
  const Loader loader_;
  const ReloadOptions options_;
  std::string seen_;  // identity of the manifest that was tried last

  std::mutex mutex_;
  std::condition_variable changed_;
  bool requested_ = false;
  bool looking_ = false;
  std::atomic<bool> stopping_ = false;
  std::chrono::steady_clock::time_point retry_at_ = std::chrono::steady_clock::time_point::max();
  std::chrono::steady_clock::time_point next_trim_ = {};
  WaitableThread watcher_;
};

}  // namespace blindfuse
