#include "host/server/file_reloader.h"

#include <exception>
#include <utility>

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

}  // namespace blindfuse
