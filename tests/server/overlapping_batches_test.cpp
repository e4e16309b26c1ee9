// A scheduler whose engine has two batches at the same time.
#include <gtest/gtest.h>

#include <atomic>
#include <condition_variable>
#include <deque>
#include <future>
#include <mutex>
#include <optional>
#include <thread>

#include "host/cpu/pipelines/answer_pipeline.h"
#include "host/server/serving/batch_scheduler.h"
#include "tests/server/ask_and_wait.h"
#include "tests/server/tiny_database.h"
#include "tests/support.h"

namespace blindfuse {
namespace {

using server_testing::ask_later;
using server_testing::queries;
using server_testing::responses;
using support::as_bytes;

// An engine that takes a second batch while it computes the first, and notes what it is told.
class TwoDeepEngine final : public support::PlainEngine {
 public:
  struct Control {
    std::mutex mutex;
    std::condition_variable changed;
    std::vector<std::string> events;
    bool held = true;              // nothing ends, except for
    int released = 0;              // this many batches
    bool is_waited_for = false;    // by whoever began a batch and has nothing else to do
    std::string begin_failure;     // not empty: what begin() throws
    bool lost = false;             // finish() throws DeviceLostError
    std::optional<int> puts_left;  // put() throws when there are none left

    void note(std::string event) {
      const std::lock_guard lock(mutex);
      events.push_back(std::move(event));
      changed.notify_all();
    }
    // Until a batch was begun, and no other can be before one ends.
    void wait_until_waited_for() {
      std::unique_lock lock(mutex);
      changed.wait(lock, [&] { return is_waited_for; });
    }
    void release() {
      const std::lock_guard lock(mutex);
      held = false;
      changed.notify_all();
    }
    void release_one() {
      const std::lock_guard lock(mutex);
      ++released;
      is_waited_for = false;
      changed.notify_all();
    }
  };

  explicit TwoDeepEngine(std::shared_ptr<Control> control)
      : PlainEngine(server_testing::kRows, server_testing::kColumns),
        control_(std::move(control)) {}

  std::unique_ptr<AnswerPipeline> make_answer_pipeline(WireBits bits, size_t slot_count,
                                                       size_t batch_max) override {
    return std::make_unique<Pipeline>(
        PlainEngine::make_answer_pipeline(bits, slot_count, batch_max), control_);
  }

 private:
  class Pipeline final : public AnswerPipeline {
   public:
    Pipeline(std::unique_ptr<AnswerPipeline> host, std::shared_ptr<Control> control)
        : host_(std::move(host)), control_(std::move(control)) {}
    size_t depth() const override { return 2; }
    void put(size_t slot, std::span<const uint8_t> query) override {
      if (control_->puts_left && (*control_->puts_left)-- == 0) throw ResourceError("no more");
      host_->put(slot, query);
    }
    void move(size_t from, size_t to) override { host_->move(from, to); }
    void begin(size_t first, size_t count) override {
      const std::string failure = control_->begin_failure;
      control_->note("begin " + std::to_string(count));
      if (!failure.empty()) throw ResourceError(failure);
      begun_.emplace_back(first, count);
    }
    std::span<const uint8_t> finish() override {
      {
        std::unique_lock lock(control_->mutex);
        control_->is_waited_for = true;
        control_->changed.notify_all();
        control_->changed.wait(lock, [&] { return !control_->held || control_->released > 0; });
        if (control_->held) --control_->released;
      }
      const auto [first, count] = begun_.front();
      begun_.pop_front();
      control_->note("finish " + std::to_string(count));
      if (control_->lost) throw DeviceLostError("the test's device is gone");
      host_->begin(first, count);
      return host_->finish();
    }

   private:
    const std::unique_ptr<AnswerPipeline> host_;
    const std::shared_ptr<Control> control_;
    std::deque<std::pair<size_t, size_t>> begun_;
  };

  const std::shared_ptr<Control> control_;
};

class TwoDeepTest : public testing::Test {
 protected:
  std::future<std::string> ask(uint64_t seed, size_t count = 1) {
    return ask_later(scheduler_, as_bytes(queries(count, seed)));
  }
  // The engine has one query, whose batch does not end.
  std::future<std::string> ask_held(uint64_t seed) {
    auto answer = ask(seed);
    control_->wait_until_waited_for();
    return answer;
  }
  void wait_for_queue(size_t count) const {
    while (scheduler_.waiting_count() < count) std::this_thread::yield();
  }

  const std::shared_ptr<TwoDeepEngine::Control> control_ =
      std::make_shared<TwoDeepEngine::Control>();
  const LoadedDatabase database_ =
      server_testing::tiny_database(std::make_unique<TwoDeepEngine>(control_));
  struct Observer final : BatchObserver {
    std::vector<std::string> failures;
    std::vector<size_t> batches;
    std::chrono::duration<double> busy{0};
    size_t waited = 0;

    void on_waited(std::chrono::duration<double> time) override {
      EXPECT_GE(time.count(), 0);
      ++waited;
    }
    void on_batch(size_t query_count, std::chrono::duration<double> time) override {
      EXPECT_GT(time.count(), 0);
      batches.push_back(query_count);
      busy += time;
    }
    void on_failure(const std::exception& error) override {
      const bool lost = dynamic_cast<const DeviceLostError*>(&error) != nullptr;
      failures.push_back((lost ? "lost: " : "") + std::string(error.what()));
    }
  };
  Observer observer_;
  BatchScheduler scheduler_{*database_.engine, database_.manifest.layout, BatchLimits{3, 20},
                            &observer_};
};

// Two full batches are in the engine at the same time; a third waits for room, the last, which is
// not full, for the engine to be idle.
TEST_F(TwoDeepTest, FullBatchesBeginWhileAnotherIsComputed) {
  auto first = ask_held(100);
  auto many = ask(200, 7);  // two full batches and one more
  control_->release();
  EXPECT_EQ(first.get(), responses(1, 100));
  EXPECT_EQ(many.get(), responses(7, 200));
  EXPECT_EQ(control_->events,
            (std::vector<std::string>{"begin 1", "finish 1", "begin 3", "begin 3", "finish 3",
                                      "finish 3", "begin 1", "finish 1"}));
  scheduler_.stop();
  EXPECT_EQ(observer_.batches, (std::vector<size_t>{1, 3, 3, 1}));
  EXPECT_EQ(observer_.waited, 8u);
}

// However many batches it had at the same time, an engine is not busy for longer than time passes.
TEST_F(TwoDeepTest, CountsTheTimeOfBatchesThatOverlapOnce) {
  const auto start = BatchScheduler::Clock::now();
  auto first = ask_held(100);
  auto many = ask(200, 6);
  wait_for_queue(6);
  control_->release_one();
  first.get();
  control_->wait_until_waited_for();
  EXPECT_EQ(scheduler_.waiting_count(), 0u) << "both full batches are in the engine";
  // For longer than all else takes here, so that it shows if it is counted for each of them.
  const auto until = BatchScheduler::Clock::now() + std::chrono::milliseconds(200);
  while (BatchScheduler::Clock::now() < until) std::this_thread::yield();
  control_->release();
  many.get();
  scheduler_.stop();
  const std::chrono::duration<double> passed = BatchScheduler::Clock::now() - start;
  EXPECT_EQ(observer_.batches, (std::vector<size_t>{1, 3, 3}));
  EXPECT_LE(observer_.busy, passed);
  EXPECT_GE(observer_.busy, std::chrono::milliseconds(200));
}

// What is left in the queue of a request whose time is over takes no place in a batch.
TEST_F(TwoDeepTest, WhatHasExpiredFillsNoBatch) {
  auto first = ask_held(100);
  // Three of them are found to be late; the fourth stands before those who are not.
  std::atomic<int> done = 0;
  const auto now = BatchScheduler::Clock::now();
  const auto late = scheduler_.ask(as_bytes(queries(4)), now, [&] { ++done; });
  const auto in_time = scheduler_.ask(as_bytes(queries(3, 200)), now + std::chrono::hours(1));
  control_->release();
  EXPECT_EQ(first.get(), responses(1, 100));
  scheduler_.stop();
  EXPECT_EQ(in_time->responses(), responses(3, 200));
  EXPECT_EQ(late->outcome(), PendingAnswer::Outcome::kExpired);
  EXPECT_EQ(done, 1);
  EXPECT_EQ(observer_.batches, (std::vector<size_t>{1, 3}));
}

// Those who come after it are answered, and its slots are free again.
TEST_F(TwoDeepTest, AQueryThatCannotBePutLeavesNoHole) {
  auto first = ask_held(100);
  control_->puts_left = 1;
  EXPECT_THROW(scheduler_.ask(as_bytes(queries(3))), ResourceError);
  control_->puts_left.reset();
  auto after = ask(200);
  control_->release();
  EXPECT_EQ(first.get(), responses(1, 100));
  EXPECT_EQ(after.get(), responses(1, 200));
  scheduler_.stop();
  EXPECT_EQ(scheduler_.waiting_count(), 0u);
  EXPECT_EQ(observer_.batches, (std::vector<size_t>{1, 1}));
}

// A batch takes the slots that it passes over along, and those who come meanwhile get none of them.
TEST_F(TwoDeepTest, QueriesThatNobodyWaitsForLeaveTheirSlotsToNobodyBeforeTheirTurn) {
  auto first = ask_held(100);
  // All 20 that may wait: 18 for no client, and a batch that is not full.
  EXPECT_TRUE(scheduler_.ask(as_bytes(queries(18)))->drop());
  auto wanted = ask(200, 2);
  wait_for_queue(20);
  control_->release_one();
  EXPECT_EQ(first.get(), responses(1, 100));
  control_->wait_until_waited_for();
  EXPECT_EQ(scheduler_.waiting_count(), 0u) << "all 20 are in the engine";
  // There are 26 slots.
  auto after = ask(300, 6);
  wait_for_queue(6);
  EXPECT_THROW(scheduler_.ask(as_bytes(queries(1))), QueueFull);
  control_->release();
  EXPECT_EQ(wanted.get(), responses(2, 200));
  EXPECT_EQ(after.get(), responses(6, 300));
  // And all are free again.
  EXPECT_EQ(ask(500, 20).get(), responses(20, 500));
}

TEST_F(TwoDeepTest, ABatchThatCannotBeginFailsAlone) {
  control_->begin_failure = "no device memory";
  control_->release();
  EXPECT_THROW(ask(300).get(), ResourceError);
  control_->begin_failure.clear();
  EXPECT_EQ(ask(301).get(), responses(1, 301));
  scheduler_.stop();
  EXPECT_EQ(observer_.failures, std::vector<std::string>{"no device memory"});
}

TEST_F(TwoDeepTest, SaysThatTheEngineIsLost) {
  control_->lost = true;
  control_->release();
  EXPECT_THROW(ask(400).get(), ResourceError);
  scheduler_.stop();
  EXPECT_EQ(observer_.failures, std::vector<std::string>{"lost: the test's device is gone"});
}

// Slots are used again and again, across the ring's end, with batches of every size.
TEST_F(TwoDeepTest, AnswersManyThreadsAtOnce) {
  control_->release();
  std::vector<std::future<std::string>> answers;
  std::vector<std::thread> clients;
  std::atomic<int> wrong = 0;
  for (uint64_t t = 0; t < 6; ++t) {
    clients.emplace_back([&, t] {
      for (uint64_t i = 0; i < 20; ++i) {
        const uint64_t seed = 1000 * t + i;
        if (ask(seed).get() != responses(1, seed)) ++wrong;
      }
    });
  }
  for (std::thread& client : clients) client.join();
  EXPECT_EQ(wrong, 0);
}

}  // namespace
}  // namespace blindfuse
