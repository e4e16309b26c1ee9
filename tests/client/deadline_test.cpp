#include "client/deadline.h"

#include <blindfuse/errors.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <limits>

#include "client/session.h"
#include "tests/client/client_testing.h"
#include "tests/client/look_ups.h"
namespace blindfuse {
namespace {

using std::chrono::hours;
using std::chrono::milliseconds;
using std::chrono::seconds;
using testing::AllOf;
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

// Says before each query what becomes of it.
class WatchedTransport : public FakeTransport {
 public:
  WatchedTransport(FakeServer& server, std::function<void()> on_post)
      : FakeTransport(server), on_post_(std::move(on_post)) {}

  HttpReply post(const std::string& path, std::span<const uint8_t> body,
                 BodyReceiver& receiver) override {
    HttpReply reply = FakeTransport::post(path, body, receiver);
    on_post_();
    return reply;
  }

 private:
  std::function<void()> on_post_;
};

class SlowLookUpTest : public FakeServerTest {
 protected:
  HandClock clock_;
  ProgressCallback progress_;
  const std::string key_ = key(3);
  const std::string value_ = value(3);

  // Of one look-up, with what it moves.
  milliseconds allowed(size_t count) const {
    const Layout& layout = server_.database.layout();
    return milliseconds(60'000 + count * (layout.query_bytes() + layout.response_bytes()) / 32);
  }

  Session session(std::function<void()> on_post, RandomSource random = fill_from_system) {
    ClientOptions options = this->options();
    options.progress = progress_;
    return Session(std::make_unique<WatchedTransport>(server_, std::move(on_post)), "http://test",
                   std::move(options), std::move(random), HintFiles::kOnDisk, clock_.clock());
  }
};

TEST_F(SlowLookUpTest, SeveralRequestsAreOneCall) {
  Session session = this->session([this] { clock_.advance(seconds(25)); });
  session.sync();
  // Before the last of four requests 75 s have gone.
  ASSERT_LT(allowed(60), seconds(75));
  EXPECT_THAT(
      message_of<ConnectionError>([&] { values_of(session, std::vector<std::string>(60, key_)); }),
      AllOf(HasSubstr("the call to http://test was not done in"),
            HasSubstr("allow more with --timeout")));
  EXPECT_EQ(value_of(session, key_), value_) << "the next call has its own time";
}

TEST_F(SlowLookUpTest, LargeRequestsHaveTheTimeForTheirBytes) {
  size_t count = 0;
  Session session = this->session([&] { clock_.advance(allowed(count) - milliseconds(1)); });
  session.sync();
  count = 16;
  EXPECT_EQ(values_of(session, std::vector<std::string>(16, key_)).at(15), value_);
}

TEST_F(SlowLookUpTest, WhatTheClientComputesIsNotTheServersTime) {
  bool is_slow = false;
  const auto slow_random = [&](std::span<uint8_t> bytes) {
    if (is_slow) clock_.advance(hours(1));
    fill_from_system(bytes);
  };
  Session session = this->session([] {}, slow_random);
  session.sync();
  is_slow = true;
  EXPECT_EQ(value_of(session, key_), value_);
}

TEST_F(SlowLookUpTest, ReadingHintsAndDecodingIsNotTheServersTime) {
  for (const ClientStage slow : {ClientStage::kCheckingHints, ClientStage::kDecodingAnswers}) {
    progress_ = [&, slow](const ClientProgress& progress) {
      if (progress.stage == slow) clock_.advance(hours(1));
      return true;
    };
    Session session = this->session([] {});
    session.sync();
    const Deadline::Call call(session.deadline());
    EXPECT_EQ(value_of(session, key_), value_);
    EXPECT_EQ(value_of(session, key_), value_);
  }
}

TEST_F(SlowLookUpTest, ABusyServerIsNotWaitedForLongerThanTheCallMayTake) {
  server_.errors = {FakeServer::error(503, "queue full", 0),
                    FakeServer::error(503, "queue full", 30)};
  Session session = this->session([this] { clock_.advance(seconds(40)); });
  session.sync();
  try {
    value_of(session, key_);
    FAIL();
  } catch (const ServerBusyError& busy) {
    EXPECT_EQ(busy.retry_after_s(), 30u);
  }
}

TEST_F(SlowLookUpTest, AnEpochThatChangesGivesNoNewCall) {
  const ServedDatabase other = server_.database.with_other_seed();
  Session session = this->session([this] { clock_.advance(hours(1)); });
  session.sync();
  server_.errors = {FakeServer::error(410, "retired")};
  server_.database = other;
  EXPECT_THROW(value_of(session, key_), ConnectionError);
  EXPECT_EQ(server_.count("/queries"), 1u);
}

TEST_F(SlowLookUpTest, AConnectionThatClosedUnderAQueryGetsANewQueryOnce) {
  // Where no key is, and where one is.
  for (const std::string& key : {key_, std::string("no such key")}) {
    SCOPED_TRACE(key == key_);
    server_.requests.clear();
    int closes = 1;
    Session session = this->session([&] {
      if (closes-- > 0) throw KeptConnectionClosed("closed");
    });
    EXPECT_EQ(value_of(session, key).has_value(), key == key_);
    EXPECT_EQ(server_.count("/queries"), 2u);
    closes = 2;
    EXPECT_THROW(value_of(session, key), KeptConnectionClosed);
    EXPECT_EQ(server_.count("/queries"), 4u);
    expect_all_queries_differ();
  }
}

}  // namespace
}  // namespace blindfuse
