// Signals for which a program can wait. The first SIGTERM or SIGINT asks the program to finish, a
// second one to end at once. The program can make the request itself, too. SIGHUP asks it to read
// its files again.
#pragma once

#include <signal.h>

#include <functional>

#include "src/system/file.h"

namespace blindfuse {

class Signals {
 public:
  // Blocks the signals in this thread and in all threads that it starts later. Threads that exist
  // already would still die of them.
  Signals();
  // Unblocks them, except SIGHUP, which is ignored from here on.
  ~Signals();
  Signals(const Signals&) = delete;
  Signals& operator=(const Signals&) = delete;

  enum class Event { kStop, kStopRequested, kReload };
  // The next event, which may have come earlier: request_stop(), then a signal to stop, then
  // SIGHUP.
  Event wait();
  // Any thread, any number of times.
  void request_stop();

  // Runs `work`. The first signal to stop meanwhile is passed to `on_signal` on another thread,
  // which may end the process. If no thread can be started, such a signal ends the process by
  // default.
  void run_until_next(const std::function<void()>& work, const std::function<void(int)>& on_signal);
  // Ends the process as this signal would have.
  [[noreturn]] static void die_of(int signal);

 private:
  static int next(const FileDescriptor& signals);
  static void run_unwatched(const std::function<void()>& work);

  sigset_t before_;
  FileDescriptor stops_;
  FileDescriptor hangups_;
  FileDescriptor requests_;
  FileDescriptor finished_;  // the work of run_until_next
};

}  // namespace blindfuse
