// Signals as something to wait for: of SIGTERM and SIGINT the first asks the program to finish, a
// second to end at once; the program may ask itself, too. SIGHUP asks it to read its files again.
#pragma once

#include <signal.h>

#include <functional>

#include "src/system/file.h"

namespace blindfuse {

class Signals {
 public:
  // Holds the signals back from this thread and from all that it starts later; threads that are
  // there already would still die of them.
  Signals();
  // Gives them back, except SIGHUP, which is ignored from here on.
  ~Signals();
  Signals(const Signals&) = delete;
  Signals& operator=(const Signals&) = delete;

  enum class Event { kStop, kStopRequested, kReload };
  // The next of them, also one from before: request_stop(), then a signal to stop, then SIGHUP.
  Event wait();
  // Any thread, any number of times.
  void request_stop();

  // Runs `work`; the first signal to stop meanwhile is given to `on_signal`, on another thread,
  // which may end the process. Where no thread can be started, such a signal ends it as it does by
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
