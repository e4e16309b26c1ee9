#include "host/server/stop_signals.h"

#include <gtest/gtest.h>
#include <signal.h>
#include <unistd.h>

#include <stdexcept>

namespace blindfuse {
namespace {

TEST(StopSignals, WaitsForASignal) {
  StopSignals signals;
  kill(getpid(), SIGTERM);
  EXPECT_EQ(signals.wait(), SIGTERM);
  kill(getpid(), SIGINT);
  EXPECT_EQ(signals.wait(), SIGINT);
}

TEST(StopSignals, WaitsForARequest) {
  StopSignals signals;
  signals.request_stop();
  signals.request_stop();
  EXPECT_EQ(signals.wait(), std::nullopt);
}

TEST(StopSignals, WorkEndsByItself) {
  StopSignals signals;
  bool worked = false;
  signals.run_until_next([&] { worked = true; }, [](int) { FAIL(); });
  EXPECT_TRUE(worked);
  EXPECT_THROW(
      signals.run_until_next([] { throw std::runtime_error("of the work"); }, [](int) { FAIL(); }),
      std::runtime_error);
}

TEST(StopSignals, ASignalMeanwhileEndsTheProcessAsItWouldHave) {
  for (const int signal : {SIGTERM, SIGINT}) {
    EXPECT_EXIT(
        {
          StopSignals signals;
          kill(getpid(), signal);
          signals.run_until_next(
              [] {
                for (;;) pause();
              },
              StopSignals::die_of);
        },
        testing::KilledBySignal(signal), "");
  }
}

}  // namespace
}  // namespace blindfuse
