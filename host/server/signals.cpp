#include "host/server/signals.h"

#include <poll.h>
#include <sys/eventfd.h>
#include <sys/signalfd.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <cstring>
#include <exception>
#include <string>
#include <system_error>
#include <thread>

#include "src/base/errors.h"
#include "src/program/program.h"

namespace blindfuse {
namespace {

[[noreturn]] void fail() {
  throw ResourceError(std::string("cannot wait for signals: ") + std::strerror(errno));
}

}  // namespace

Signals::Signals() : requests_(eventfd(0, EFD_CLOEXEC)), finished_(eventfd(0, EFD_CLOEXEC)) {
  sigset_t stops;
  sigemptyset(&stops);
  sigaddset(&stops, SIGTERM);
  sigaddset(&stops, SIGINT);
  stops_ = FileDescriptor(signalfd(-1, &stops, SFD_CLOEXEC));
  sigset_t hangups;
  sigemptyset(&hangups);
  sigaddset(&hangups, SIGHUP);
  hangups_ = FileDescriptor(signalfd(-1, &hangups, SFD_CLOEXEC));
  if (!stops_.is_open() || !hangups_.is_open() || !requests_.is_open() || !finished_.is_open()) {
    fail();
  }
  sigset_t all = stops;
  sigaddset(&all, SIGHUP);
  pthread_sigmask(SIG_BLOCK, &all, &before_);
  // A blocked SIGHUP arrives although it is ignored. It is unblocked when the program ends, and
  // ends nothing then.
  std::signal(SIGHUP, SIG_IGN);
}

// Pending signals were meant for the service that has ended, and would end the process now.
Signals::~Signals() {
  sigset_t ours;
  sigemptyset(&ours);
  for (const int signal : {SIGTERM, SIGINT, SIGHUP}) sigaddset(&ours, signal);
  const timespec at_once{};
  while (sigtimedwait(&ours, nullptr, &at_once) > 0) {
  }
  pthread_sigmask(SIG_SETMASK, &before_, nullptr);
}

// The number of a signal that has arrived.
int Signals::next(const FileDescriptor& signals) {
  signalfd_siginfo arrived{};
  while (read(signals.get(), &arrived, sizeof arrived) != sizeof arrived) {
    if (errno != EINTR) fail();
  }
  return static_cast<int>(arrived.ssi_signo);
}

Signals::Event Signals::wait() {
  pollfd events[3] = {
      {stops_.get(), POLLIN, 0}, {requests_.get(), POLLIN, 0}, {hangups_.get(), POLLIN, 0}};
  while (poll(events, 3, -1) < 0) {
    if (errno != EINTR) fail();
  }
  // A request comes first: run_until_next() may have made it of the first signal, and a signal that
  // has arrived is then the second one.
  if ((events[1].revents & POLLIN) != 0) return Event::kStopRequested;
  if ((events[0].revents & POLLIN) != 0) {
    next(stops_);
    return Event::kStop;
  }
  next(hangups_);
  return Event::kReload;
}

void Signals::die_of(int signal) {
  std::signal(signal, SIG_DFL);
  sigset_t only;
  sigemptyset(&only);
  sigaddset(&only, signal);
  pthread_sigmask(SIG_UNBLOCK, &only, nullptr);
  raise(signal);
  _exit(kExitFailed);  // not reached
}

void Signals::request_stop() {
  const uint64_t once = 1;
  (void)!::write(requests_.get(), &once, sizeof once);
}

// A process that has neither descriptors nor threads left must be able to end. Only the thread is
// taken here, and the work can be done without it.
void Signals::run_until_next(const std::function<void()>& work,
                             const std::function<void(int)>& on_signal) {
  std::thread watcher;
  try {
    watcher = std::thread([&] {
      pollfd events[2] = {{stops_.get(), POLLIN, 0}, {finished_.get(), POLLIN, 0}};
      while (poll(events, 2, -1) < 0) {
        if (errno != EINTR) return;
      }
      if ((events[0].revents & POLLIN) != 0) on_signal(next(stops_));
    });
  } catch (const std::exception&) {
    run_unwatched(work);
    return;
  }
  std::exception_ptr failure;
  try {
    work();
  } catch (...) {
    failure = std::current_exception();
  }
  uint64_t once = 1;
  (void)!::write(finished_.get(), &once, sizeof once);  // an eventfd at 0 takes it
  watcher.join();
  (void)!::read(finished_.get(), &once, sizeof once);
  if (failure) std::rethrow_exception(failure);
}

// A signal to stop ends the process as it does other programs.
void Signals::run_unwatched(const std::function<void()>& work) {
  sigset_t stops;
  sigemptyset(&stops);
  sigaddset(&stops, SIGTERM);
  sigaddset(&stops, SIGINT);
  pthread_sigmask(SIG_UNBLOCK, &stops, nullptr);
  work();
  pthread_sigmask(SIG_BLOCK, &stops, nullptr);
}

}  // namespace blindfuse
