// Whose turn it is in the queue of a scheduler, and how many queries a client may have there.
#include <gtest/gtest.h>

#include <deque>
#include <map>
#include <thread>

#include "host/server/serving/batch_scheduler.h"
#include "tests/server/tiny_database.h"
#include "tests/support.h"

namespace blindfuse {
namespace {

using server_testing::queries;
using server_testing::responses;
using server_testing::TestEngine;
using support::as_bytes;

// Asks for clients, and notes the number of the batch after which each of them had its answer.
class ClientsOfAScheduler : public testing::Test {
 protected:
  ~ClientsOfAScheduler() override { control_->release(); }

  void start(const BatchLimits& limits) {
    scheduler_ =
        std::make_unique<BatchScheduler>(*database_.engine, database_.manifest.layout, limits);
  }
  // The engine has one query, which no client sent.
  void hold() {
    control_->hold();
    ask("", 1);
    control_->wait_for_batches(1);
  }
  void ask(const std::string& client, size_t count = 1) {
    const uint64_t seed = seed_;
    seed_ += count;
    Asked& asked = asked_.emplace_back(Asked{client, responses(count, seed)});
    try {
      asked.answer = scheduler_->ask(
          as_bytes(queries(count, seed)), BatchScheduler::Clock::time_point::max(),
          [this, &asked] {
            const std::lock_guard lock(control_->mutex);
            asked.batch = control_->batches.size();
          },
          client);
    } catch (...) {
      asked_.pop_back();
      throw;
    }
  }
  // All answers are right. Returns the batches with which those of a client were complete.
  std::map<std::string, std::vector<size_t>> finish() {
    control_->release();
    scheduler_->stop();
    std::map<std::string, std::vector<size_t>> batches;
    for (const Asked& asked : asked_) {
      EXPECT_EQ(asked.answer->responses(), asked.expected) << asked.client;
      batches[asked.client].push_back(asked.batch);
    }
    EXPECT_EQ(scheduler_->waiting_count(), 0u);
    return batches;
  }

  struct Asked {
    std::string client;
    std::string expected;
    std::shared_ptr<PendingAnswer> answer = {};
    size_t batch = 0;
  };
  const std::shared_ptr<TestEngine::Control> control_ = std::make_shared<TestEngine::Control>();
  const LoadedDatabase database_ =
      server_testing::tiny_database(std::make_unique<TestEngine>(control_));
  std::deque<Asked> asked_;
  uint64_t seed_ = 0;
  std::unique_ptr<BatchScheduler> scheduler_;
};

TEST_F(ClientsOfAScheduler, DoNotWaitForAllThatAnotherHasQueued) {
  start({.batch_max = 4, .queue_max = 256});
  hold();
  for (int i = 0; i < 100; ++i) ask("A");
  ask("B");
  auto batches = finish();
  EXPECT_EQ(batches["B"], std::vector<size_t>{2}) << "the next batch";
  EXPECT_EQ(batches["A"].back(), 27u);
  EXPECT_EQ(control_->batches.size(), 27u);
}

// Whatever they send in one request, a batch has one query of each before a second one of any; in
// the order of their arrival, as far as that goes.
TEST_F(ClientsOfAScheduler, TakeTurns) {
  start({.batch_max = 4, .queue_max = 64});
  hold();
  ask("A", 8);
  ask("B", 3);
  ask("C", 1);
  ask("A", 1);
  ask("D", 2);
  // A B C D | A B D A | B A A A | A A A.
  auto batches = finish();
  EXPECT_EQ(batches["C"], std::vector<size_t>{2});
  EXPECT_EQ(batches["D"], std::vector<size_t>{3});
  EXPECT_EQ(batches["B"], std::vector<size_t>{4});
  EXPECT_EQ(batches["A"], (std::vector<size_t>{5, 5}));
  EXPECT_EQ(control_->batches, (std::vector<size_t>{1, 4, 4, 4, 3}));
}

// A client that has waited for nothing has saved up nothing, and one that comes late owes nothing.
TEST_F(ClientsOfAScheduler, BeginWithTheTurnOfTheMoment) {
  start({.batch_max = 1, .queue_max = 64});
  control_->hold();
  for (int i = 0; i < 4; ++i) ask("A");
  control_->wait_for_batches(1);
  ask("B", 3);
  // A | A B A B A B: at the same turn, whoever came first.
  auto batches = finish();
  EXPECT_EQ(batches["A"], (std::vector<size_t>{1, 2, 4, 6}));
  EXPECT_EQ(batches["B"], std::vector<size_t>{7});
}

TEST_F(ClientsOfAScheduler, KeepTheirTurnsNextToQueriesThatNobodyWaitsFor) {
  start({.batch_max = 3, .queue_max = 64});
  hold();
  for (int i = 0; i < 12; ++i) ask("A");
  ask("B", 2);
  for (const size_t gone : {1, 2, 5, 9}) EXPECT_TRUE(asked_[gone].answer->drop());
  control_->release();
  scheduler_->stop();
  for (size_t i = 0; i < asked_.size(); ++i) {
    if (asked_[i].answer->is_done()) {
      EXPECT_EQ(asked_[i].answer->responses(), asked_[i].expected) << i;
    }
  }
  EXPECT_EQ(asked_.back().batch, 2u);
  EXPECT_EQ(scheduler_->client_count(), 0u);
}

TEST_F(ClientsOfAScheduler, CannotFillTheQueueAlone) {
  start({.batch_max = 2, .queue_max = 8});
  hold();
  for (int i = 0; i < 4; ++i) ask("A");
  EXPECT_THROW(ask("A"), QueueFull);
  EXPECT_THROW(scheduler_->check_room(1, "A"), QueueFull);
  // Whoever is new gets what is left, the fourth of these, too.
  ask("B");
  ask("B");
  EXPECT_THROW(ask("B"), QueueFull);
  ask("C");
  EXPECT_NO_THROW(scheduler_->check_room(1, "D"));
  ask("D");
  EXPECT_THROW(ask("E"), QueueFull);
  EXPECT_EQ(scheduler_->client_count(), 4u);
  finish();
  EXPECT_EQ(scheduler_->client_count(), 0u) << "nothing is remembered of them";
}

// Otherwise a client that leaves its queries alone would have room for others at once.
TEST_F(ClientsOfAScheduler, HaveTheirShareUntilABatchPassesTheirQueries) {
  start({.batch_max = 2, .queue_max = 4});
  hold();
  ask("A", 2);
  EXPECT_TRUE(asked_.back().answer->drop());
  asked_.pop_back();
  EXPECT_THROW(ask("A"), QueueFull);
  ask("B", 2);
  finish();
}

TEST_F(ClientsOfAScheduler, ThatAreNotKnownMayFillTheQueue) {
  start({.batch_max = 2, .queue_max = 8, .client_queries_per_minute_max = 1});
  hold();
  for (int i = 0; i < 8; ++i) ask("");
  EXPECT_THROW(ask(""), QueueFull);
  EXPECT_EQ(scheduler_->client_count(), 0u);
  auto batches = finish();
  EXPECT_EQ(batches[""], (std::vector<size_t>{1, 2, 2, 3, 3, 4, 4, 5, 5}));
}

// A clock that stands still unless a test moves it.
class QuotaTest : public ClientsOfAScheduler {
 protected:
  void start_with_quota(uint64_t per_minute, size_t clients_max = 100) {
    start({.batch_max = 4,
           .queue_max = 64,
           .client_queries_per_minute_max = per_minute,
           .quota_clients_max = clients_max,
           .quota_clock = [this] { return now_; }});
  }
  void answer(const std::string& client, size_t count = 1) {
    ask(client, count);
    while (!asked_.back().answer->is_done()) std::this_thread::yield();
  }
  std::chrono::seconds wait_of(const std::string& client, size_t count = 1) {
    try {
      scheduler_->check_room(count, client);
    } catch (const OverQuota& error) {
      return error.retry_after();
    }
    return std::chrono::seconds(0);
  }

  using seconds = std::chrono::seconds;
  BatchScheduler::Clock::time_point now_ = BatchScheduler::Clock::now();
};

// 20 a minute: one every 3 s, and those of a minute at once.
TEST_F(QuotaTest, IsOfEachClient) {
  start_with_quota(20);
  for (int i = 0; i < 10; ++i) answer("A", 2);
  EXPECT_THROW(ask("A"), OverQuota);
  EXPECT_EQ(wait_of("A"), seconds(3));
  EXPECT_EQ(wait_of("A", 4), seconds(12));
  EXPECT_EQ(wait_of("B", 4), seconds(0));
  answer("B", 4);
  now_ += std::chrono::milliseconds(2'001);
  EXPECT_EQ(wait_of("A"), seconds(1));
  now_ += std::chrono::milliseconds(999);
  answer("A");
  EXPECT_THROW(ask("A"), OverQuota);
  now_ += std::chrono::hours(1);
  answer("A", 20);
  EXPECT_THROW(ask("A"), OverQuota) << "no more is saved up than a minute's";
}

TEST_F(QuotaTest, AdmitsALargeRequestOfAClientThatHasUsedNothing) {
  start_with_quota(3);
  answer("A", 4);
  EXPECT_EQ(wait_of("A"), seconds(40));
  EXPECT_EQ(wait_of("A", 4), seconds(80));
  now_ += seconds(80);
  answer("A", 4);
}

TEST_F(QuotaTest, RemembersFewClients) {
  start_with_quota(1, 10);
  for (int i = 0; i < 10; ++i) answer(std::to_string(i));
  EXPECT_EQ(scheduler_->client_count(), 10u);
  now_ += seconds(59);
  EXPECT_EQ(wait_of("0"), seconds(1));
  answer("another");  // all of them are over their quota: they begin again
  EXPECT_EQ(scheduler_->client_count(), 1u);
  for (int i = 0; i < 4; ++i) answer(std::to_string(i));
  now_ += seconds(2);  // that of "another" is over in 58 s
  for (int i = 4; i < 9; ++i) answer(std::to_string(i));
  now_ += seconds(58);
  answer("one more");  // five are over; the others stay
  EXPECT_EQ(scheduler_->client_count(), 6u);
  EXPECT_EQ(wait_of("0"), seconds(0));
  EXPECT_EQ(wait_of("4"), seconds(2));
  for (int i = 0; i < 1000; ++i) {
    answer("address " + std::to_string(i));
    ASSERT_LE(scheduler_->client_count(), 10u);
  }
}

}  // namespace
}  // namespace blindfuse
