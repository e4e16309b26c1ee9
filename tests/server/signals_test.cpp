#include "host/server/signals.h"

#include <gtest/gtest.h>
#include <signal.h>
#include <unistd.h>

#include <stdexcept>

namespace blindfuse {
namespace {

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
