// SIGTERM and SIGINT as something to wait for. The first asks the program to finish, a second to
// end at once. The program may ask itself, too.
#pragma once

#include <signal.h>

#include <functional>
#include <optional>

#include "src/system/file.h"

namespace blindfuse {

class StopSignals {
 public:
  // Holds both signals back from this thread and from all that it starts later; threads that are
  // there already would still die of them.
  StopSignals();
  // Gives them back.
  ~StopSignals();
  StopSignals(const StopSignals&) = delete;
  StopSignals& operator=(const StopSignals&) = delete;

  // Returns the number of the first signal, or nothing once request_stop() has been called.
  std::optional<int> wait();
  // Any thread, any number of times.
  void request_stop();

  // Runs `work`; a signal meanwhile is given to `on_signal`, on another thread, which ends the
  // process.
  void run_until_next(const std::function<void()>& work, const std::function<void(int)>& on_signal);
  // Ends the process as this signal would have.
  [[noreturn]] static void die_of(int signal);

 private:
  int next();

  sigset_t signals_;
  sigset_t before_;
  FileDescriptor arrivals_;
  FileDescriptor requests_;
};

}  // namespace blindfuse
