// SIGTERM and SIGINT as something to wait for. The first asks the program to finish, a second to
// end at once. The program may ask itself, too.
#pragma once

#include <signal.h>

#include <functional>
#include <optional>

#include "src/system/file.h"

namespace blindfuse {

// Holds both signals back from this thread and from all that it starts meanwhile, for as long as
// those live; threads that are there already would still die of them.
class StopSignalsHeldBack {
 public:
  StopSignalsHeldBack();
  ~StopSignalsHeldBack();
  StopSignalsHeldBack(const StopSignalsHeldBack&) = delete;
  StopSignalsHeldBack& operator=(const StopSignalsHeldBack&) = delete;

  const sigset_t& signals() const { return signals_; }

 private:
  sigset_t signals_;
  sigset_t before_;
};

class StopSignals {
 public:
  StopSignals();

  // Returns the number of the first signal, or nothing once request_stop() has been called.
  std::optional<int> wait();
  // Any thread, any number of times.
  void request_stop();

  // Runs `work`; a signal meanwhile ends the process, after `last_words`, with exit status 1.
  void run_until_next(const std::function<void()>& work, const std::function<void()>& last_words);

 private:
  const StopSignalsHeldBack held_back_;
  FileDescriptor arrivals_;
  FileDescriptor requests_;
};

}  // namespace blindfuse
