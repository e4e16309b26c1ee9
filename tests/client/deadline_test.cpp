#include "client/deadline.h"

#include <blindfuse/errors.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <limits>

#include "tests/client/hand_clock.h"

namespace blindfuse {
namespace {

using std::chrono::hours;
using std::chrono::milliseconds;
using std::chrono::seconds;
using testing::HasSubstr;

class DeadlineTest : public testing::Test {
 protected:
  HandClock clock_;
  Deadline deadline_{seconds(60), clock_.clock()};
};

TEST_F(DeadlineTest, IsOverWhenTheCallTookThatLong) {
  const Deadline::Call call(deadline_);
  clock_.advance(milliseconds(59'999));
  EXPECT_EQ(deadline_.left(), milliseconds(1));
  EXPECT_NO_THROW(deadline_.check("http://test"));
  clock_.advance(milliseconds(1));
  EXPECT_EQ(deadline_.left(), milliseconds(0));
  EXPECT_THROW(deadline_.check("http://test"), ConnectionError);
  clock_.advance(hours(1));
  EXPECT_EQ(deadline_.left(), milliseconds(0));
}

TEST_F(DeadlineTest, ACallWithinACallHasNoTimeOfItsOwn) {
  const Deadline::Call call(deadline_);
  clock_.advance(seconds(50));
  {
    const Deadline::Call inner(deadline_);
    EXPECT_EQ(deadline_.left(), seconds(10));
  }
  EXPECT_EQ(deadline_.left(), seconds(10));
}

TEST_F(DeadlineTest, EveryCallBeginsAnew) {
  {
    const Deadline::Call call(deadline_);
    deadline_.allow(32'000);
    clock_.advance(seconds(100));
    EXPECT_TRUE(deadline_.is_over());
  }
  const Deadline::Call call(deadline_);
  EXPECT_EQ(deadline_.left(), seconds(60));
  EXPECT_EQ(deadline_.trouble("http://test"),
            "the call to http://test was not done in 60 s; allow more with --timeout");
}

TEST_F(DeadlineTest, BytesGetASecondForEach32000) {
  const Deadline::Call call(deadline_);
  deadline_.allow(16'000);
  EXPECT_EQ(deadline_.left(), milliseconds(60'500));
  deadline_.allow(16'000);
  deadline_.allow(320'000);
  EXPECT_EQ(deadline_.left(), seconds(71));
  EXPECT_THAT(deadline_.trouble("http://test"),
              HasSubstr("was not done in 71 s (60 s, and 352000 bytes at 32 kB/s); allow more"));
}

TEST_F(DeadlineTest, AnyNumberOfBytesIsLessThanAYearAndAnHour) {
  const Deadline::Call call(deadline_);
  for (int i = 0; i < 3; ++i) deadline_.allow(std::numeric_limits<uint64_t>::max());
  EXPECT_GT(deadline_.left(), hours(24 * 364));
  EXPECT_LT(deadline_.left(), hours(24 * 365 + 1));
  EXPECT_EQ(deadline_.left_for(std::numeric_limits<uint64_t>::max()), deadline_.left());
}

TEST_F(DeadlineTest, OneRequestOfSeveralHasTheTimeOfACallAtMost) {
  const Deadline::Call call(deadline_);
  EXPECT_EQ(deadline_.left_for(32'000), seconds(60));
  deadline_.allow(32'000'000);
  EXPECT_EQ(deadline_.left_for(32'000), seconds(61));
}

TEST_F(DeadlineTest, TheClockStandsStillForTheClientsOwnWork) {
  const Deadline::Call call(deadline_);
  clock_.advance(seconds(20));
  EXPECT_EQ(deadline_.stopped([&] {
    clock_.advance(hours(5));
    return 7;
  }),
            7);
  EXPECT_EQ(deadline_.left(), seconds(40));
  EXPECT_THROW(deadline_.stopped([&] {
    clock_.advance(hours(5));
    throw CancelledError();
  }),
               CancelledError);
  EXPECT_EQ(deadline_.left(), seconds(40));
}

}  // namespace
}  // namespace blindfuse
