// Reads files again on request, while the server runs.
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

}  // namespace blindfuse
