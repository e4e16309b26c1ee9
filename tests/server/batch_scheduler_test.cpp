#include "host/server/serving/batch_scheduler.h"

#include <gtest/gtest.h>

#include <future>
#include <thread>

#include "tests/server/ask_and_wait.h"
#include "tests/server/tiny_database.h"
#include "tests/support.h"

namespace blindfuse {
namespace {

using server_testing::ask_later;
using server_testing::queries;
using server_testing::responses;
using server_testing::TestEngine;
using support::as_bytes;

class BatchSchedulerTest : public testing::Test {
 protected:
  void start(size_t batch_max, size_t queue_max) {
    scheduler_ = std::make_unique<BatchScheduler>(*database_.engine, database_.manifest.layout,
                                                  BatchLimits{batch_max, queue_max});
  }
  std::future<std::string> ask(uint64_t seed, uint64_t count = 1) {
    return ask_later(*scheduler_, as_bytes(queries(count, seed)));
  }
  std::shared_ptr<PendingAnswer> ask_pending(uint64_t seed, uint64_t count = 1) {
    return scheduler_->ask(as_bytes(queries(count, seed)));
  }
  // The engine holds the batch that this query is in.
  std::future<std::string> ask_held(uint64_t seed) {
    control_->hold();
    const size_t begun = control_->batches.size();
    auto answer = ask(seed);
    control_->wait_for_batches(begun + 1);
    return answer;
  }
  static void wait_for(const PendingAnswer& answer) {
    while (!answer.is_done()) std::this_thread::yield();
  }

  const std::shared_ptr<TestEngine::Control> control_ = std::make_shared<TestEngine::Control>();
  const LoadedDatabase database_ =
      server_testing::tiny_database(std::make_unique<TestEngine>(control_));
  std::unique_ptr<BatchScheduler> scheduler_;
};

TEST_F(BatchSchedulerTest, AnswersTheQueriesOfOneCallInOrder) {
  start(4, 8);
  for (const size_t count : {1u, 2u, 4u, 5u, 8u}) EXPECT_EQ(ask(0, count).get(), responses(count));
}

TEST_F(BatchSchedulerTest, BringsWhatWaitsIntoFullBatches) {
  start(4, 9);
  std::vector<std::future<std::string>> answers;
  answers.push_back(ask_held(0));
  for (uint64_t seed = 1; seed <= 9; ++seed) answers.push_back(ask(seed));
  control_->release();
  for (uint64_t seed = 0; seed <= 9; ++seed) EXPECT_EQ(answers[seed].get(), responses(1, seed));
  EXPECT_EQ(control_->batches, (std::vector<size_t>{1, 4, 4, 1}));
}

TEST_F(BatchSchedulerTest, EndsABatchWhereTheRingEnds) {
  start(3, 4);  // 7 slots
  for (int round = 0; round < 20; ++round) {
    auto first = ask_held(0);
    std::vector<std::future<std::string>> answers;
    for (uint64_t seed = 1; seed <= 4; ++seed) answers.push_back(ask(seed));
    control_->release();
    // Joined by more while the ring is not empty.
    auto late = ask(5);
    EXPECT_EQ(first.get(), responses(1, 0));
    for (uint64_t seed = 1; seed <= 4; ++seed) {
      EXPECT_EQ(answers[seed - 1].get(), responses(1, seed));
    }
    try {
      EXPECT_EQ(late.get(), responses(1, 5));
    } catch (const QueueFull&) {
      // It was faster than the engine.
    }
  }
}

TEST_F(BatchSchedulerTest, RefusesWhatDoesNotFitAtOnce) {
  start(2, 3);
  auto running = ask_held(0);
  auto second = ask(1, 2);
  EXPECT_THROW(ask_pending(8, 2), QueueFull);
  EXPECT_EQ(scheduler_->waiting_count(), 2u) << "a refused call takes no place";
  auto third = ask(3);
  EXPECT_THROW(ask_pending(8), QueueFull);
  // Responses to this many are more than any machine holds. Nothing of these queries is read.
  const std::string query = queries(1);
  EXPECT_THROW(scheduler_->ask({as_bytes(query).data(), query.size() << 40}), QueueFull);
  control_->release();
  EXPECT_EQ(running.get() + second.get() + third.get(), responses(4));
}

// Whoever stays gets an answer to the query that is their own, wherever the others were.
TEST_F(BatchSchedulerTest, LeavesOutWhomNobodyWaitsFor) {
  start(6, 12);
  for (unsigned gone = 0; gone < 64; ++gone) {
    const size_t begun = control_->batches.size();
    auto first = ask_held(0);
    std::vector<std::shared_ptr<PendingAnswer>> answers;
    for (unsigned i = 0; i < 6; ++i) answers.push_back(ask_pending(10 + i));
    size_t left = 0;
    for (unsigned i = 0; i < 6; ++i) {
      if ((gone >> i & 1) == 0) {
        ++left;
        continue;
      }
      EXPECT_TRUE(answers[i]->drop());
      EXPECT_FALSE(answers[i]->drop());
      EXPECT_LT(answers[i]->responses().capacity(), server_testing::kResponseBytes)
          << "it holds memory";
    }
    control_->release();
    EXPECT_EQ(first.get(), responses(1));
    for (unsigned i = 0; i < 6; ++i) {
      if ((gone >> i & 1) != 0) continue;
      wait_for(*answers[i]);
      EXPECT_EQ(answers[i]->responses(), responses(1, 10 + i));
    }
    while (scheduler_->waiting_count() > 0) std::this_thread::yield();
    const std::vector<size_t> batches(control_->batches.begin() + static_cast<long>(begun),
                                      control_->batches.end());
    EXPECT_EQ(batches, left == 0 ? std::vector<size_t>{1} : (std::vector<size_t>{1, left}));
  }
}

TEST_F(BatchSchedulerTest, CannotDropWhatTheEngineHas) {
  start(1, 8);
  control_->hold();
  const auto answer = ask_pending(0, 2);
  control_->wait_for_batches(1);
  EXPECT_FALSE(answer->drop()) << "one of its queries is there";
  control_->release();
  wait_for(*answer);
  EXPECT_EQ(answer->outcome(), PendingAnswer::Outcome::kAnswered);
}

// The response of the query that is in the engine still has a place to go to.
TEST_F(BatchSchedulerTest, ComputesNoMoreOfWhatIsAbandoned) {
  start(1, 8);
  control_->hold();
  const auto abandoned = ask_pending(0, 3);
  control_->wait_for_batches(1);
  auto next = ask(1);
  abandoned->abandon();
  control_->release();
  EXPECT_EQ(next.get(), responses(1, 1));
  EXPECT_EQ(control_->batches, (std::vector<size_t>{1, 1}));
  const auto whole = ask_pending(0);
  wait_for(*whole);
  whole->abandon();
  EXPECT_EQ(whole->responses(), responses(1)) << "that changes nothing";
}

// Its other queries are not left behind in the ring, and the next call is answered.
TEST_F(BatchSchedulerTest, ACallFailsWhicheverOfItsBatchesDoes) {
  start(1, 8);
  for (size_t failing = 0; failing < 3; ++failing) {
    const size_t begun = control_->batches.size();
    control_->fail_batch(begun + failing);
    EXPECT_THROW(ask(0, 3).get(), ResourceError) << "batch " << failing;
    EXPECT_EQ(control_->batches.size(), begun + 3);
    EXPECT_EQ(ask(1).get(), responses(1, 1));
  }
}

TEST_F(BatchSchedulerTest, AnswersWhatWaitsBeforeItStops) {
  start(2, 8);
  auto first = ask_held(0);
  auto others = ask(1, 4);
  auto stopped = std::async(std::launch::async, [&] { scheduler_->stop(); });
  // Until it has been told to stop, the queue has no room for as many.
  for (bool is_told = false; !is_told;) {
    try {
      ask_pending(0, 8);
    } catch (const QueueFull&) {
    } catch (const SchedulerStopped&) {
      is_told = true;
    }
  }
  control_->release();
  EXPECT_EQ(first.get() + others.get(), responses(5));
  stopped.get();
}

}  // namespace
}  // namespace blindfuse
