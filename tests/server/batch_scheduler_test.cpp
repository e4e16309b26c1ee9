#include "host/server/serving/batch_scheduler.h"

#include <gtest/gtest.h>

#include <atomic>
#include <condition_variable>
#include <deque>
#include <future>
#include <map>
#include <mutex>
#include <optional>
#include <thread>

#include "host/cpu/pipelines/answer_pipeline.h"
#include "tests/server/ask_and_wait.h"
#include "tests/server/tiny_database.h"

namespace blindfuse {
namespace {

using server_testing::ask_and_wait;
using server_testing::ask_later;
using server_testing::expected_response;
using server_testing::kQueryBits;
using server_testing::Numbers;
using server_testing::pack;
using server_testing::random_query;
using server_testing::TestEngine;

std::span<const uint8_t> bytes_of(const std::string& text) {
  return {reinterpret_cast<const uint8_t*>(text.data()), text.size()};
}

class BatchSchedulerTest : public testing::Test {
 protected:
  std::unique_ptr<BatchScheduler> scheduler(size_t batch_max, size_t queue_max) {
    return std::make_unique<BatchScheduler>(*database_.engine, database_.manifest.layout,
                                            BatchLimits{batch_max, queue_max});
  }

  static std::future<std::string> ask(BatchScheduler& scheduler, uint64_t seed) {
    return ask_later(scheduler, bytes_of(pack(random_query(seed), kQueryBits)));
  }

  // The engine holds one batch, and `count` queries wait.
  void wait_for_queue(const BatchScheduler& scheduler, size_t count) {
    control_->wait_for_batches(1);
    while (scheduler.waiting_count() < count) std::this_thread::yield();
  }

  const std::shared_ptr<TestEngine::Control> control_ = std::make_shared<TestEngine::Control>();
  const LoadedDatabase database_ =
      server_testing::tiny_database(std::make_unique<TestEngine>(control_));
};

// The numbers are small enough to work out on paper.
TEST(BatchScheduler, ComputesAProductWorkedOutByHand) {
  Layout layout;
  layout.kind = DatabaseKind::kIndex;
  layout.key_count = 64;
  layout.row_count = 64;
  layout.arity = 1;
  layout.record = {.digest_bytes = 0, .length_bytes = 0, .value_bytes = 2};
  layout.lwe = find_lwe_params("lwe-1288");
  layout.query_bits = 32;
  layout.response_bits = 16;
  TestEngine engine(std::make_shared<TestEngine::Control>(), 64, 2);
  std::vector<uint8_t> columns(2 * 64);
  columns[0] = 3;  // row 0: 3, -2
  columns[64] = 0xfe;
  columns[5] = 0xff;  // row 5: -1, 127
  columns[64 + 5] = 0x7f;
  engine.set_columns(0, columns);
  BatchScheduler scheduler(engine, layout, {1, 1});
  std::string query(256, '\0');
  query[2] = 1;       // row 0: 0x00010000
  query[20 + 3] = 1;  // row 5: 0x01000000
  // Column 0: 0x00030000 - 0x01000000 = 0xff030000; column 1: 0x7f000000 - 0x00020000 = 0x7efe0000;
  // the upper 16 bits.
  EXPECT_EQ(ask_and_wait(scheduler, bytes_of(query)), std::string("\x03\xff\xfe\x7e", 4));
}

TEST_F(BatchSchedulerTest, AnswersOneQueryAfterTheOther) {
  const auto scheduler = this->scheduler(4, 8);
  for (uint64_t seed = 0; seed < 30; ++seed) {
    EXPECT_EQ(ask(*scheduler, seed).get(), expected_response(random_query(seed)));
  }
  for (const size_t size : control_->batches) EXPECT_EQ(size, 1u);
}

TEST_F(BatchSchedulerTest, AnswersTheQueriesOfOneCallInOrder) {
  const auto scheduler = this->scheduler(4, 8);
  for (const size_t count : {2u, 4u, 5u, 8u}) {
    std::string queries;
    std::string expected;
    for (uint64_t seed = 0; seed < count; ++seed) {
      queries += pack(random_query(seed), kQueryBits);
      expected += expected_response(random_query(seed));
    }
    EXPECT_EQ(ask_and_wait(*scheduler, bytes_of(queries)), expected) << count;
  }
}

TEST_F(BatchSchedulerTest, BringsWhatWaitsIntoFullBatches) {
  const auto scheduler = this->scheduler(4, 9);
  control_->hold();
  std::vector<std::future<std::string>> answers;
  answers.push_back(ask(*scheduler, 0));
  wait_for_queue(*scheduler, 0);
  for (uint64_t seed = 1; seed <= 9; ++seed) answers.push_back(ask(*scheduler, seed));
  wait_for_queue(*scheduler, 9);
  control_->release();
  for (uint64_t seed = 0; seed <= 9; ++seed) {
    EXPECT_EQ(answers[seed].get(), expected_response(random_query(seed)));
  }
  EXPECT_EQ(control_->batches, (std::vector<size_t>{1, 4, 4, 1}));
}

TEST_F(BatchSchedulerTest, EndsABatchWhereTheRingEnds) {
  const auto scheduler = this->scheduler(3, 4);  // 7 slots
  for (int round = 0; round < 20; ++round) {
    control_->hold();
    const size_t begun = control_->batches.size();
    std::vector<std::future<std::string>> answers;
    answers.push_back(ask(*scheduler, 0));
    control_->wait_for_batches(begun + 1);
    for (uint64_t seed = 1; seed <= 4; ++seed) answers.push_back(ask(*scheduler, seed));
    while (scheduler->waiting_count() < 4) std::this_thread::yield();
    control_->release();
    // Joined by more while the ring is not empty.
    answers.push_back(ask(*scheduler, 5));
    for (uint64_t seed = 0; seed < 5; ++seed) {
      EXPECT_EQ(answers[seed].get(), expected_response(random_query(seed)));
    }
    try {
      EXPECT_EQ(answers[5].get(), expected_response(random_query(5)));
    } catch (const QueueFull&) {
      // It was faster than the engine.
    }
  }
}

// Asks for clients, and notes the number of the batch after which each of them had its answer.
class ClientsOfAScheduler : public BatchSchedulerTest {
 protected:
  static constexpr auto kNoDeadline = BatchScheduler::Clock::time_point::max();

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
    std::string queries;
    Asked& asked = asked_.emplace_back(Asked{.client = client});
    for (size_t i = 0; i < count; ++i) {
      const Numbers query = random_query(seed_++);
      queries += pack(query, kQueryBits);
      asked.expected += expected_response(query);
    }
    try {
      asked.answer = scheduler_->ask(
          bytes_of(queries), kNoDeadline,
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
    std::string expected = {};
    std::shared_ptr<PendingAnswer> answer = {};
    size_t batch = 0;
  };
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

TEST_F(BatchSchedulerTest, RefusesWhatDoesNotFitBeforeItTakesMemory) {
  const auto scheduler = this->scheduler(2, 3);
  const std::string query = pack(random_query(0), kQueryBits);
  // Responses to this many are more than any machine holds. Nothing of these queries is read.
  const std::span<const uint8_t> too_many(bytes_of(query).data(), query.size() << 40);
  EXPECT_THROW(scheduler->ask(too_many), QueueFull);
}

TEST_F(BatchSchedulerTest, RefusesWhatDoesNotFitAtOnce) {
  const auto scheduler = this->scheduler(2, 3);
  control_->hold();
  auto running = ask(*scheduler, 0);
  wait_for_queue(*scheduler, 0);
  auto second = ask(*scheduler, 1);
  auto third = ask(*scheduler, 2);
  wait_for_queue(*scheduler, 2);
  const std::string query = pack(random_query(3), kQueryBits);
  EXPECT_THROW(ask_and_wait(*scheduler, bytes_of(query + query)), QueueFull);
  EXPECT_EQ(scheduler->waiting_count(), 2u) << "a refused call takes no place";
  auto fourth = ask(*scheduler, 3);
  wait_for_queue(*scheduler, 3);
  EXPECT_THROW(ask_and_wait(*scheduler, bytes_of(query)), QueueFull);
  control_->release();
  EXPECT_EQ(running.get(), expected_response(random_query(0)));
  EXPECT_EQ(second.get(), expected_response(random_query(1)));
  EXPECT_EQ(third.get(), expected_response(random_query(2)));
  EXPECT_EQ(fourth.get(), expected_response(random_query(3)));
}

// Whoever stays gets an answer to the query that is their own, wherever the others were.
TEST_F(BatchSchedulerTest, LeavesOutWhomNobodyWaitsFor) {
  const auto scheduler = this->scheduler(6, 12);
  for (unsigned gone = 0; gone < 64; ++gone) {
    control_->hold();
    const size_t begun = control_->batches.size();
    auto first = ask(*scheduler, 0);
    control_->wait_for_batches(begun + 1);
    std::vector<std::shared_ptr<PendingAnswer>> answers;
    for (unsigned i = 0; i < 6; ++i) {
      answers.push_back(scheduler->ask(bytes_of(pack(random_query(10 + i), kQueryBits))));
    }
    size_t left = 0;
    for (unsigned i = 0; i < 6; ++i) {
      if ((gone >> i & 1) != 0) {
        EXPECT_TRUE(answers[i]->drop());
        EXPECT_FALSE(answers[i]->drop());
        EXPECT_LT(answers[i]->responses().capacity(), server_testing::kResponseBytes)
            << "it holds memory";
      } else {
        ++left;
      }
    }
    control_->release();
    EXPECT_EQ(first.get(), expected_response(random_query(0)));
    for (unsigned i = 0; i < 6; ++i) {
      if ((gone >> i & 1) != 0) continue;
      while (!answers[i]->is_done()) std::this_thread::yield();
      EXPECT_EQ(answers[i]->responses(), expected_response(random_query(10 + i)));
    }
    while (scheduler->waiting_count() > 0) std::this_thread::yield();
    const std::vector<size_t> batches(control_->batches.begin() + static_cast<long>(begun),
                                      control_->batches.end());
    EXPECT_EQ(batches, left == 0 ? std::vector<size_t>{1} : (std::vector<size_t>{1, left}));
  }
}

TEST_F(BatchSchedulerTest, CannotDropWhatTheEngineHas) {
  const auto scheduler = this->scheduler(1, 8);
  control_->hold();
  const std::string query = pack(random_query(0), kQueryBits);
  const auto answer = scheduler->ask(bytes_of(query + query));
  control_->wait_for_batches(1);
  EXPECT_FALSE(answer->drop()) << "one of its queries is there";
  control_->release();
  while (!answer->is_done()) std::this_thread::yield();
  EXPECT_EQ(answer->outcome(), PendingAnswer::Outcome::kAnswered);
}

// The response of the query that is in the engine still has a place to go to.
TEST_F(BatchSchedulerTest, ComputesNoMoreOfWhatIsAbandoned) {
  const auto scheduler = this->scheduler(1, 8);
  control_->hold();
  const std::string query = pack(random_query(0), kQueryBits);
  const auto abandoned = scheduler->ask(bytes_of(query + query + query));
  control_->wait_for_batches(1);
  auto next = ask(*scheduler, 1);
  abandoned->abandon();
  control_->release();
  EXPECT_EQ(next.get(), expected_response(random_query(1)));
  EXPECT_EQ(control_->batches, (std::vector<size_t>{1, 1}));
  const auto whole = scheduler->ask(bytes_of(query));
  while (!whole->is_done()) std::this_thread::yield();
  whole->abandon();
  EXPECT_EQ(whole->responses(), expected_response(random_query(0))) << "that changes nothing";
}

TEST_F(BatchSchedulerTest, TellsThoseWhoseTimeIsOver) {
  const auto scheduler = this->scheduler(4, 8);
  control_->hold();
  auto running = ask(*scheduler, 0);
  control_->wait_for_batches(1);
  const auto now = BatchScheduler::Clock::now();
  const std::string query = pack(random_query(1), kQueryBits);
  std::atomic<int> done = 0;
  const auto late = scheduler->ask(bytes_of(query + query), now, [&] { ++done; });
  const auto in_time = scheduler->ask(bytes_of(query), now + std::chrono::hours(1));
  control_->release();
  while (!in_time->is_done() || !late->is_done()) std::this_thread::yield();
  EXPECT_EQ(late->outcome(), PendingAnswer::Outcome::kExpired);
  EXPECT_EQ(in_time->outcome(), PendingAnswer::Outcome::kAnswered);
  EXPECT_EQ(in_time->responses(), expected_response(random_query(1)));
  EXPECT_EQ(done, 1);
  EXPECT_EQ(control_->batches, (std::vector<size_t>{1, 1}));
  running.get();
}

TEST_F(BatchSchedulerTest, AFailureConcernsItsBatchAlone) {
  const auto scheduler = this->scheduler(4, 8);
  control_->fail(true);
  EXPECT_THROW(ask(*scheduler, 0).get(), ResourceError);
  control_->fail(false);
  EXPECT_EQ(ask(*scheduler, 1).get(), expected_response(random_query(1)));
}

TEST_F(BatchSchedulerTest, ACallFailsWhenOneOfItsBatchesDoes) {
  const auto scheduler = this->scheduler(1, 8);
  control_->hold();
  const std::string query = pack(random_query(0), kQueryBits);
  auto answer = std::async(std::launch::async, [&] {
    return ask_and_wait(*scheduler, bytes_of(query + query + query));
  });
  control_->wait_for_batches(1);
  control_->fail(true);
  control_->release();
  EXPECT_THROW(answer.get(), ResourceError);
  EXPECT_EQ(control_->batches.size(), 3u) << "its other queries are not left behind in the ring";
}

TEST_F(BatchSchedulerTest, ACallFailsWhicheverOfItsBatchesDoes) {
  const std::string query = pack(random_query(0), kQueryBits);
  for (size_t failing = 0; failing < 3; ++failing) {
    control_->fail_batch(control_->batches.size() + failing);
    const auto scheduler = this->scheduler(1, 8);
    EXPECT_THROW(ask_and_wait(*scheduler, bytes_of(query + query + query)), ResourceError)
        << "batch " << failing;
  }
}

TEST_F(BatchSchedulerTest, AnswersWhatWaitsBeforeItStops) {
  const auto scheduler = this->scheduler(2, 8);
  control_->hold();
  std::vector<std::future<std::string>> answers;
  answers.push_back(ask(*scheduler, 0));
  wait_for_queue(*scheduler, 0);
  for (uint64_t seed = 1; seed < 5; ++seed) answers.push_back(ask(*scheduler, seed));
  wait_for_queue(*scheduler, 4);
  auto stopped = std::async(std::launch::async, [&] { scheduler->stop(); });
  while (true) {
    try {
      ask_and_wait(*scheduler, bytes_of(std::string(kQueryBits * 128 / 8 * 8, '\0')));
    } catch (const QueueFull&) {
      continue;  // not yet told to stop
    } catch (const SchedulerStopped&) {
      break;
    }
  }
  control_->release();
  for (uint64_t seed = 0; seed < 5; ++seed) {
    EXPECT_EQ(answers[seed].get(), expected_response(random_query(seed)));
  }
  stopped.get();
}

TEST_F(BatchSchedulerTest, GivesEachOfManyThreadsItsOwnAnswers) {
  const auto scheduler = this->scheduler(4, 64);
  std::vector<std::future<void>> clients;
  for (uint64_t client = 0; client < 16; ++client) {
    clients.push_back(std::async(std::launch::async, [&, client] {
      for (uint64_t i = 0; i < 20; ++i) {
        const Numbers query = random_query(client * 1000 + i);
        EXPECT_EQ(ask_and_wait(*scheduler, bytes_of(pack(query, kQueryBits))),
                  expected_response(query));
      }
    }));
  }
  for (auto& client : clients) client.get();
}

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
    std::string queries;
    for (size_t i = 0; i < count; ++i) queries += pack(random_query(seed + i), kQueryBits);
    return ask_later(scheduler_, bytes_of(queries));
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
  auto first = ask(100);
  control_->wait_until_waited_for();
  auto many = ask(200, 7);  // two full batches and one more
  control_->release();
  EXPECT_EQ(first.get(), expected_response(random_query(100)));
  std::string expected;
  for (uint64_t i = 0; i < 7; ++i) expected += expected_response(random_query(200 + i));
  EXPECT_EQ(many.get(), expected);
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
  auto first = ask(100);
  control_->wait_until_waited_for();
  auto many = ask(200, 6);
  while (scheduler_.waiting_count() < 6) std::this_thread::yield();
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
  auto first = ask(100);
  control_->wait_until_waited_for();
  std::string queries;
  for (uint64_t i = 0; i < 4; ++i) queries += pack(random_query(i), kQueryBits);
  // Three of them are found to be late; the fourth stands before those who are not.
  const auto late = scheduler_.ask(bytes_of(queries), BatchScheduler::Clock::now());
  std::vector<std::future<std::string>> others;
  for (uint64_t i = 0; i < 3; ++i) others.push_back(ask(200 + i));
  control_->release();
  EXPECT_EQ(first.get(), expected_response(random_query(100)));
  for (uint64_t i = 0; i < 3; ++i) {
    EXPECT_EQ(others[i].get(), expected_response(random_query(200 + i)));
  }
  EXPECT_EQ(late->outcome(), PendingAnswer::Outcome::kExpired);
  scheduler_.stop();
  EXPECT_EQ(observer_.batches, (std::vector<size_t>{1, 3}));
}

// Those who come after it are answered, and its slots are free again.
TEST_F(TwoDeepTest, AQueryThatCannotBePutLeavesNoHole) {
  auto first = ask(100);
  control_->wait_until_waited_for();
  std::string queries;
  for (uint64_t i = 0; i < 3; ++i) queries += pack(random_query(i), kQueryBits);
  control_->puts_left = 1;
  EXPECT_THROW(scheduler_.ask(bytes_of(queries)), ResourceError);
  control_->puts_left.reset();
  auto after = ask(200);
  control_->release();
  EXPECT_EQ(first.get(), expected_response(random_query(100)));
  EXPECT_EQ(after.get(), expected_response(random_query(200)));
  scheduler_.stop();
  EXPECT_EQ(scheduler_.waiting_count(), 0u);
  EXPECT_EQ(observer_.batches, (std::vector<size_t>{1, 1}));
}

// A batch takes the slots that it passes over along, and those who come meanwhile get none of them.
TEST_F(TwoDeepTest, QueriesThatNobodyWaitsForLeaveTheirSlotsToNobodyBeforeTheirTurn) {
  const auto ask_many = [&](uint64_t seed, size_t count) {
    std::string queries;
    for (size_t i = 0; i < count; ++i) queries += pack(random_query(seed + i), kQueryBits);
    return scheduler_.ask(bytes_of(queries));
  };
  auto first = ask(100);
  control_->wait_until_waited_for();
  // All 20 that may wait: 18 for no client, and a batch that is not full.
  EXPECT_TRUE(ask_many(0, 18)->drop());
  auto wanted = ask(200, 2);
  while (scheduler_.waiting_count() < 20) std::this_thread::yield();
  control_->release_one();
  EXPECT_EQ(first.get(), expected_response(random_query(100)));
  control_->wait_until_waited_for();
  EXPECT_EQ(scheduler_.waiting_count(), 0u) << "all 20 are in the engine";
  // There are 26 slots.
  auto after = ask(300, 6);
  while (scheduler_.waiting_count() < 6) std::this_thread::yield();
  EXPECT_THROW(ask_many(400, 1), QueueFull);
  control_->release();
  const auto expect_right = [](const std::string& responses, uint64_t seed, size_t count) {
    std::string expected;
    for (uint64_t i = 0; i < count; ++i) expected += expected_response(random_query(seed + i));
    EXPECT_EQ(responses, expected);
  };
  expect_right(wanted.get(), 200, 2);
  expect_right(after.get(), 300, 6);
  // And all are free again.
  expect_right(ask(500, 20).get(), 500, 20);
}

TEST_F(TwoDeepTest, ABatchThatCannotBeginFailsAlone) {
  control_->begin_failure = "no device memory";
  control_->release();
  auto failing = ask(300);
  EXPECT_THROW(failing.get(), ResourceError);
  control_->begin_failure.clear();
  EXPECT_EQ(ask(301).get(), expected_response(random_query(301)));
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
        if (ask(seed).get() != expected_response(random_query(seed))) ++wrong;
      }
    });
  }
  for (std::thread& client : clients) client.join();
  EXPECT_EQ(wrong, 0);
}

}  // namespace
}  // namespace blindfuse
