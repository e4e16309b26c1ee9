#include "bench/load/interruption.h"

#include <csignal>

#include "src/program/program.h"

namespace blindfuse::load {
namespace {

volatile std::sig_atomic_t caught = 0;

void set_action(void (*handler)(int)) {
  struct sigaction action {};  // without SA_RESTART
  action.sa_handler = handler;
  sigaction(SIGINT, &action, nullptr);
  sigaction(SIGTERM, &action, nullptr);
}

}  // namespace

void catch_interruptions() {
  set_action([](int signal) { caught = signal; });
}

void leave_interruptions() { set_action(SIG_DFL); }

void throw_if_interrupted() {
  if (caught != 0) throw ExitStatus{128 + caught};
}

}  // namespace blindfuse::load
