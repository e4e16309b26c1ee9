#include "host/server/stop_signals.h"

#include <poll.h>
#include <sys/eventfd.h>
#include <sys/signalfd.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
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

StopSignalsHeldBack::StopSignalsHeldBack() {
  sigemptyset(&signals_);
  sigaddset(&signals_, SIGTERM);
  sigaddset(&signals_, SIGINT);
  pthread_sigmask(SIG_BLOCK, &signals_, &before_);
}

StopSignalsHeldBack::~StopSignalsHeldBack() { pthread_sigmask(SIG_SETMASK, &before_, nullptr); }

StopSignals::StopSignals()
    : arrivals_(signalfd(-1, &held_back_.signals(), SFD_CLOEXEC)),
      requests_(eventfd(0, EFD_CLOEXEC)) {
  if (!arrivals_.is_open() || !requests_.is_open()) fail();
}

std::optional<int> StopSignals::wait() {
  pollfd events[2] = {{arrivals_.get(), POLLIN, 0}, {requests_.get(), POLLIN, 0}};
  for (;;) {
    if (poll(events, 2, -1) < 0) {
      if (errno != EINTR) fail();
      continue;
    }
    if ((events[0].revents & POLLIN) == 0) return std::nullopt;
    signalfd_siginfo arrived{};
    if (read(arrivals_.get(), &arrived, sizeof arrived) == sizeof arrived) {
      return static_cast<int>(arrived.ssi_signo);
    }
    if (errno != EINTR) fail();
  }
}

void StopSignals::request_stop() {
  const uint64_t once = 1;
  (void)!::write(requests_.get(), &once, sizeof once);
}

void StopSignals::run_until_next(const std::function<void()>& work,
                                 const std::function<void()>& last_words) {
  const FileDescriptor finished(eventfd(0, EFD_CLOEXEC));
  if (!finished.is_open()) fail();
  std::thread watcher([&] {
    pollfd events[2] = {{arrivals_.get(), POLLIN, 0}, {finished.get(), POLLIN, 0}};
    while (poll(events, 2, -1) < 0) {
    }
    if ((events[0].revents & POLLIN) == 0) return;
    last_words();
    _exit(kExitFailed);
  });
  work();
  const uint64_t once = 1;
  (void)!::write(finished.get(), &once, sizeof once);  // an eventfd at 0 takes it
  watcher.join();
}

}  // namespace blindfuse
