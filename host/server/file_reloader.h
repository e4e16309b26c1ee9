// Reads files again when it is told to, while the server goes on.
#pragma once

#include <chrono>
#include <condition_variable>
#include <functional>
#include <mutex>

#include "src/system/threads.h"

namespace blindfuse {

// Has a thread of its own: a file system that hangs holds up no other work, and no signals.
class FileReloader {
 public:
  // reload: reads the files again; throws nothing. Throws ResourceError where there is no thread.
  explicit FileReloader(std::function<void()> reload);
  // As stop(), and waits for the end of it.
  ~FileReloader();
  FileReloader(const FileReloader&) = delete;
  FileReloader& operator=(const FileReloader&) = delete;

  // Any thread: reads the files again, again if that has begun.
  void request();
  // Finishes what has begun. False if it has not ended after that long: a file cannot be read, and
  // what `reload` refers to stays in use.
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

}  // namespace blindfuse
