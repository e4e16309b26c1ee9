// SIGTERM and SIGINT as something to wait for. The first asks the program to finish, a second to
// end at once.
#pragma once

#include <signal.h>

#include <functional>

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

  // Returns the number of the first signal.
  int wait();

  // Runs `work`; a signal meanwhile ends the process, after `last_words`, with exit status 1.
  void run_until_next(const std::function<void()>& work, const std::function<void()>& last_words);

 private:
  sigset_t signals_;
  sigset_t before_;
  FileDescriptor arrivals_;
};

}  // namespace blindfuse
