#include "host/server/stop_signals.h"

#include <poll.h>
#include <sys/eventfd.h>
#include <sys/signalfd.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <cstring>
#include <exception>
#include <string>
#include <thread>

#include "src/errors.h"
#include "src/system/program.h"

namespace blindfuse {
namespace {

[[noreturn]] void fail() {
  throw EngineTrouble(std::string("cannot wait for signals: ") + std::strerror(errno));
}

}  // namespace

StopSignals::StopSignals() : requests_(eventfd(0, EFD_CLOEXEC)) {
  sigemptyset(&signals_);
  sigaddset(&signals_, SIGTERM);
  sigaddset(&signals_, SIGINT);
  arrivals_ = FileDescriptor(signalfd(-1, &signals_, SFD_CLOEXEC));
  if (!arrivals_.is_open() || !requests_.is_open()) fail();
  pthread_sigmask(SIG_BLOCK, &signals_, &before_);
}

StopSignals::~StopSignals() { pthread_sigmask(SIG_SETMASK, &before_, nullptr); }

// The number of a signal that has arrived.
int StopSignals::next() {
  signalfd_siginfo arrived{};
  while (read(arrivals_.get(), &arrived, sizeof arrived) != sizeof arrived) {
    if (errno != EINTR) fail();
  }
  return static_cast<int>(arrived.ssi_signo);
}

std::optional<int> StopSignals::wait() {
  pollfd events[2] = {{arrivals_.get(), POLLIN, 0}, {requests_.get(), POLLIN, 0}};
  while (poll(events, 2, -1) < 0) {
    if (errno != EINTR) fail();
  }
  if ((events[0].revents & POLLIN) == 0) return std::nullopt;
  return next();
}

void StopSignals::die_of(int signal) {
  std::signal(signal, SIG_DFL);
  sigset_t only;
  sigemptyset(&only);
  sigaddset(&only, signal);
  pthread_sigmask(SIG_UNBLOCK, &only, nullptr);
  raise(signal);
  _exit(kExitFailed);  // not reached
}

void StopSignals::request_stop() {
  const uint64_t once = 1;
  (void)!::write(requests_.get(), &once, sizeof once);
}

void StopSignals::run_until_next(const std::function<void()>& work,
                                 const std::function<void(int)>& on_signal) {
  const FileDescriptor finished(eventfd(0, EFD_CLOEXEC));
  if (!finished.is_open()) fail();
  std::thread watcher([&] {
    pollfd events[2] = {{arrivals_.get(), POLLIN, 0}, {finished.get(), POLLIN, 0}};
    while (poll(events, 2, -1) < 0) {
    }
    if ((events[0].revents & POLLIN) != 0) on_signal(next());
  });
  std::exception_ptr failure;
  try {
    work();
  } catch (...) {
    failure = std::current_exception();
  }
  const uint64_t once = 1;
  (void)!::write(finished.get(), &once, sizeof once);  // an eventfd at 0 takes it
  watcher.join();
  if (failure) std::rethrow_exception(failure);
}

}  // namespace blindfuse
