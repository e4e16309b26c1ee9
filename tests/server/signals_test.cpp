#include "host/server/signals.h"

#include <gtest/gtest.h>
#include <signal.h>
#include <sys/resource.h>
#include <unistd.h>

#include <stdexcept>

namespace blindfuse {
namespace {

// Until SIGTERM, which was sent to the process, is taken.
void await_taken() {
  sigset_t pending;
  do {
    sigpending(&pending);
  } while (sigismember(&pending, SIGTERM) == 1);
}

TEST(Signals, WaitsForASignal) {
  Signals signals;
  for (const int signal : {SIGTERM, SIGINT}) {
    kill(getpid(), signal);
    EXPECT_EQ(signals.wait(), Signals::Event::kStop);
  }
  kill(getpid(), SIGHUP);
  EXPECT_EQ(signals.wait(), Signals::Event::kReload);
}

TEST(Signals, WaitsForARequest) {
  Signals signals;
  signals.request_stop();
  signals.request_stop();
  EXPECT_EQ(signals.wait(), Signals::Event::kStopRequested);
}

// The first signal became a request while the program started. The second one is not mistaken for
// it.
TEST(Signals, ASignalAfterARequestIsLeftForTheWorkThatStops) {
  Signals signals;
  kill(getpid(), SIGTERM);
  signals.run_until_next(await_taken, [&](int) { signals.request_stop(); });
  kill(getpid(), SIGTERM);
  EXPECT_EQ(signals.wait(), Signals::Event::kStopRequested);
  int second = 0;
  signals.run_until_next(await_taken, [&](int signal) { second = signal; });
  EXPECT_EQ(second, SIGTERM);
}

TEST(Signals, WorkEndsByItself) {
  Signals signals;
  bool worked = false;
  signals.run_until_next([&] { worked = true; }, [](int) { FAIL(); });
  EXPECT_TRUE(worked);
  EXPECT_THROW(
      signals.run_until_next([] { throw std::runtime_error("of the work"); }, [](int) { FAIL(); }),
      std::runtime_error);
}

// One that comes while a database is loaded is not lost, and ends nothing.
TEST(Signals, AHangupWaitsUntilItIsAskedFor) {
  Signals signals;
  signals.run_until_next([] { kill(getpid(), SIGHUP); }, [](int) { FAIL(); });
  EXPECT_EQ(signals.wait(), Signals::Event::kReload);
}

// Reading files again has no point any more.
TEST(Signals, WhatComesWhileTheProgramStopsDoesNotEndIt) {
  for (const int signal : {SIGHUP, SIGTERM}) {
    const Signals signals;
    kill(getpid(), signal);
  }
  // Nor does what comes after that, before the process has ended.
  EXPECT_EQ(raise(SIGHUP), 0);
}

TEST(Signals, WorkIsDoneWhereThereAreNoDescriptors) {
  Signals signals;
  rlimit before{};
  getrlimit(RLIMIT_NOFILE, &before);
  // As many as are open already; poll() waits for no more than the limit.
  const rlimit none{.rlim_cur = 3, .rlim_max = before.rlim_max};
  ASSERT_EQ(setrlimit(RLIMIT_NOFILE, &none), 0);
  int worked = 0;
  for (int i = 0; i < 2; ++i) signals.run_until_next([&] { ++worked; }, [](int) { FAIL(); });
  ASSERT_EQ(setrlimit(RLIMIT_NOFILE, &before), 0);
  EXPECT_EQ(worked, 2);
}

// A stack takes addresses, of which there are none.
TEST(Signals, WorkIsDoneWhereNoThreadCanBeStarted) {
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
  GTEST_SKIP() << "sanitizers reserve terabytes of addresses";
#endif
  EXPECT_EXIT(
      {
        Signals signals;
        rlimit none{};
        none.rlim_max = RLIM_INFINITY;
        setrlimit(RLIMIT_AS, &none);
        signals.run_until_next([] { _exit(42); }, [](int) {});
      },
      testing::ExitedWithCode(42), "");
}

TEST(Signals, ASignalMeanwhileEndsTheProcessAsItWouldHave) {
  for (const int signal : {SIGTERM, SIGINT}) {
    EXPECT_EXIT(
        {
          Signals signals;
          kill(getpid(), signal);
          signals.run_until_next(
              [] {
                for (;;) pause();
              },
              Signals::die_of);
        },
        testing::KilledBySignal(signal), "");
  }
}

}  // namespace
}  // namespace blindfuse
