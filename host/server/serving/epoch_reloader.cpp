#include "host/server/serving/epoch_reloader.h"

#include <sys/stat.h>

#include <malloc.h>
#include <algorithm>
#include <exception>
#include <memory>
#include <nlohmann/json.hpp>
#include <utility>
#include <vector>

#include "host/database/directory.h"
#include "src/base/errors.h"
#include "src/base/hex.h"
#include "src/program/log.h"

namespace blindfuse {

FileReloader::FileReloader(std::function<void()> reload)
    : reload_(std::move(reload)), worker_([this] { work(); }) {}

FileReloader::~FileReloader() { tell_to_stop(); }

void FileReloader::request() {
  const std::lock_guard lock(mutex_);
  requested_ = true;
  changed_.notify_all();
}

bool FileReloader::stop(std::chrono::milliseconds patience) {
  tell_to_stop();
  return worker_.join_within(patience);
}

void FileReloader::tell_to_stop() {
  const std::lock_guard lock(mutex_);
  stopping_ = true;
  changed_.notify_all();
}

void FileReloader::work() {
  std::unique_lock lock(mutex_);
  for (;;) {
    changed_.wait(lock, [this] { return requested_ || stopping_; });
    if (!std::exchange(requested_, false)) return;
    lock.unlock();
    try {
      reload_();
    } catch (const std::exception& error) {
      log_error("files were not read again: {}", error.what());
    }
    lock.lock();
  }
}

namespace {

// The period of grace is exact to this.
constexpr std::chrono::milliseconds kTick{500};
// Free memory goes back to the system once in this time.
constexpr std::chrono::seconds kTrimInterval{10};

struct Stopped {};

void log_epoch(LogLevel level, const std::string& message, const EpochId& epoch) {
  log_sentence(level, message, {{"epoch", short_epoch(epoch)}});
}

}  // namespace

EpochReloader::EpochReloader(ServedEpochs& epochs, ServerMetrics& metrics,
                             const BatchLimits& limits, Loader loader, ReloadOptions options)
    : epochs_(epochs),
      metrics_(metrics),
      limits_(limits),
      loader_(std::move(loader)),
      options_(std::move(options)),
      seen_(manifest_identity()),
      // A first look finds an epoch that was built while the first one was loaded.
      requested_(true),
      watcher_([this] { watch(); }) {}

EpochReloader::~EpochReloader() { tell_to_stop(); }

void EpochReloader::tell_to_stop() {
  const std::lock_guard lock(mutex_);
  stopping_ = true;
  changed_.notify_all();
}

bool EpochReloader::stop(std::chrono::milliseconds patience) {
  tell_to_stop();
  return watcher_.join_within(patience);
}

void EpochReloader::request() {
  const std::lock_guard lock(mutex_);
  requested_ = true;
  changed_.notify_all();
}

void EpochReloader::wait_until_idle() {
  std::unique_lock lock(mutex_);
  changed_.wait(lock, [this] { return stopping_ || (!requested_ && !looking_); });
}

void EpochReloader::watch() {
  auto next_look = options_.clock();
  std::unique_lock lock(mutex_);
  while (!stopping_) {
    const bool requested = std::exchange(requested_, false);
    looking_ = true;
    lock.unlock();
    const auto now = options_.clock();
    const bool look = options_.watch_interval.count() > 0 && now >= next_look;
    if (look) next_look = now + options_.watch_interval;
    try {
      look_around(now, requested, look);
    } catch (const std::exception& error) {
      log_error("cannot look for a new epoch: {}", error.what());
    }
    lock.lock();
    looking_ = false;
    changed_.notify_all();
    const auto pause =
        options_.watch_interval.count() > 0 ? std::min(kTick, options_.watch_interval) : kTick;
    changed_.wait_for(lock, pause, [this] { return requested_ || stopping_; });
  }
}

void EpochReloader::look_around(std::chrono::steady_clock::time_point now, bool requested,
                                bool look) {
  retire(now);
  if (!requested && !look && now < retry_at_) return;
  // A build renames a new file into place, so that the identity changes. It is remembered before
  // the file is read, so that a bad one is tried once.
  std::string identity = manifest_identity();
  const bool changed = identity != seen_ && !identity.empty();
  seen_ = std::move(identity);
  if (requested || changed || now >= retry_at_) load();
}

void EpochReloader::retire(std::chrono::steady_clock::time_point now) {
  // The allocator would keep free memory that lies between blocks in use: a little more with every
  // epoch, and all that many connections needed at the same time.
  if (epochs_.retire(now) == 0 && now < next_trim_) return;
  malloc_trim(0);
  next_trim_ = now + kTrimInterval;
}

// Empty when there is no such file.
std::string EpochReloader::manifest_identity() const {
  struct stat status {};
  const auto path = DatabaseDirectory(options_.directory).manifest_file();
  if (stat(path.c_str(), &status) != 0) return "";
  return std::to_string(status.st_dev) + ":" + std::to_string(status.st_ino) + ":" +
         std::to_string(status.st_mtim.tv_sec) + "." + std::to_string(status.st_mtim.tv_nsec) +
         ":" + std::to_string(status.st_size);
}

// Returns once one more epoch may be in memory. The oldest one goes, and so do its downloads.
void EpochReloader::make_room() {
  constexpr std::chrono::milliseconds kLook{10};
  for (;;) {
    if (stopping_) throw Stopped();
    retire(options_.clock());
    const std::vector<EpochInMemory> held = epochs_.in_memory();
    if (held.size() < options_.epochs_max) return;
    const EpochInMemory& oldest = held.back();
    if (oldest.state == EpochState::kGrace) {
      epochs_.end_oldest_grace();
      continue;
    }
    // The loop repeats this, since a download may have begun a moment ago.
    const size_t cut = options_.end_downloads(*oldest.downloads);
    if (cut > 0) {
      log_warning("{} downloads of epoch {} were cut off: no more than {} epochs may be in memory",
                  cut, short_epoch(oldest.id), options_.epochs_max);
    }
    std::unique_lock lock(mutex_);
    changed_.wait_for(lock, kLook, [this] { return stopping_.load(); });
  }
}

// A build that changes only the signature publishes the manifest of the same epoch again.
void EpochReloader::take_signature(const ServingEpoch& current) {
  std::string text = DatabaseDirectory(options_.directory).read_manifest_text();
  if (text == *current.manifest_text()) return;
  const ParsedManifest parsed = parse_manifest(text);
  if (parsed.epoch != current.database().epoch) return;  // a newer one: the next look finds it
  check_signature(parsed);
  current.replace_manifest_text(std::move(text));
  if (parsed.signature) {
    log_info("epoch {} is signed by {} as {}", short_epoch(parsed.epoch),
             encode_hex(parsed.signature->signer),
             numbered(parsed.signature->sequence, parsed.signature->time));
  } else {
    log_info("epoch {} is not signed any more", short_epoch(parsed.epoch));
  }
}

void EpochReloader::load() {
  // A load that failed because the machine lacked something may succeed later; a bad epoch stays
  // bad.
  constexpr std::chrono::seconds kRetryAfter{30};
  retry_at_ = std::chrono::steady_clock::time_point::max();
  const auto current = epochs_.current();
  const auto on_step = [this] {
    if (stopping_) throw Stopped();
    // A large epoch takes minutes, which are no more grace for those before.
    retire(options_.clock());
  };
  try {
    const ParsedManifest manifest = DatabaseDirectory(options_.directory).read_manifest();
    if (manifest.epoch == current->database().epoch) return take_signature(*current);
    log_epoch(LogLevel::kInfo, "loading epoch " + short_epoch(manifest.epoch), manifest.epoch);
    make_room();
    auto next = std::make_shared<const ServingEpoch>(loader_(current->database(), on_step), limits_,
                                                     &metrics_);
    const EpochId id = next->database().epoch;
    epochs_.replace(std::move(next), options_.clock() + options_.grace);
    metrics_.on_epoch_load(true);
    log_epoch(LogLevel::kInfo,
              fmt::format("serving epoch {}; the one before for {} s more", short_epoch(id),
                          options_.grace.count()),
              id);
  } catch (const Stopped&) {
  } catch (const DeviceLostError& error) {
    metrics_.on_epoch_load(false);
    options_.on_device_lost(std::string("while a new epoch was loaded: ") + error.what());
  } catch (const InputError& error) {
    metrics_.on_epoch_load(false);
    log_error("the new epoch is refused, and the previous one stays in service: {}", error.what());
  } catch (const std::exception& error) {
    retry_at_ = options_.clock() + kRetryAfter;
    metrics_.on_epoch_load(false);
    log_error(
        "the new epoch cannot be loaded now, and the previous one stays in service; trying again "
        "in {} s: {}",
        kRetryAfter.count(), error.what());
  }
}

}  // namespace blindfuse
