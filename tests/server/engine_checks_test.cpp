// The scheduler's part in finding out that an engine computes wrong: the server's own queries,
// before anything is answered and then at regular times.
#include <gtest/gtest.h>

#include <atomic>
#include <condition_variable>
#include <mutex>
#include <thread>

#include "host/server/serving/batch_scheduler.h"
#include "tests/server/ask_and_wait.h"
#include "tests/server/tiny_database.h"

namespace blindfuse {
namespace {

using server_testing::ask_and_wait;
using server_testing::ask_later;
using server_testing::expected_response;
using server_testing::kColumns;
using server_testing::kQueryBits;
using server_testing::kRows;
using server_testing::pack;
using server_testing::random_query;
using server_testing::TestEngine;

std::span<const uint8_t> bytes_in(const std::string& text) {
  return {reinterpret_cast<const uint8_t*>(text.data()), text.size()};
}

// Counts what happens, for tests to wait for.
class Events {
 public:
  void happen() {
    const std::lock_guard lock(mutex_);
    ++count_;
    changed_.notify_all();
  }
  void wait_for(size_t count) {
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [&] { return count_ >= count; });
  }
  size_t count() {
    const std::lock_guard lock(mutex_);
    return count_;
  }

 private:
  std::mutex mutex_;
  std::condition_variable changed_;
  size_t count_ = 0;
};

// An engine whose responses are wrong in their last byte when a test says so, and that tells of its
// batches.
class DoubtfulEngine final : public support::PlainEngine {
 public:
  struct Told {
    std::mutex mutex;
    std::vector<size_t> batches;
    Events batch;
    // Of batches of this size: 0 none, kAll all.
    std::atomic<size_t> wrong_size = 0;
    static constexpr size_t kAll = 1'000;

    std::vector<size_t> sizes() {
      const std::lock_guard lock(mutex);
      return batches;
    }
  };

  explicit DoubtfulEngine(std::shared_ptr<Told> told)
      : PlainEngine(kRows, kColumns), told_(std::move(told)) {}

  std::unique_ptr<AnswerPipeline> make_answer_pipeline(WireBits bits, size_t slot_count,
                                                       size_t batch_max) override {
    return std::make_unique<Pipeline>(
        PlainEngine::make_answer_pipeline(bits, slot_count, batch_max), told_);
  }

 private:
  class Pipeline final : public AnswerPipeline {
   public:
    Pipeline(std::unique_ptr<AnswerPipeline> pipeline, std::shared_ptr<Told> told)
        : pipeline_(std::move(pipeline)), told_(std::move(told)) {}
    size_t depth() const override { return pipeline_->depth(); }
    void put(size_t slot, std::span<const uint8_t> query) override { pipeline_->put(slot, query); }
    void move(size_t from, size_t to) override { pipeline_->move(from, to); }
    void begin(size_t first, size_t count) override {
      {
        const std::lock_guard lock(told_->mutex);
        told_->batches.push_back(count);
      }
      count_ = count;
      pipeline_->begin(first, count);
    }
    std::span<const uint8_t> finish() override {
      const auto responses = pipeline_->finish();
      responses_.assign(responses.begin(), responses.end());
      const size_t wrong = told_->wrong_size;
      if (wrong == count_ || wrong == Told::kAll) responses_.back() ^= 1;
      told_->batch.happen();
      return responses_;
    }

   private:
    const std::unique_ptr<AnswerPipeline> pipeline_;
    const std::shared_ptr<Told> told_;
    size_t count_ = 0;
    std::vector<uint8_t> responses_;
  };

  const std::shared_ptr<Told> told_;
};

struct FailureObserver final : BatchObserver {
  void on_waited(std::chrono::duration<double>) override {}
  void on_batch(size_t, std::chrono::duration<double>) override {}
  void on_failure(const std::exception& error) override {
    lost = dynamic_cast<const DeviceLostError*>(&error) != nullptr;
    failures.happen();
  }

  Events failures;
  std::atomic<bool> lost = false;
};

class EngineCheckTest : public ::testing::Test {
 protected:
  EngineCheckTest() {
    for (const uint64_t seed : {1, 2}) {
      const auto bytes = [](const std::string& text) {
        return std::vector<uint8_t>(text.begin(), text.end());
      };
      canary_.exchanges[seed - 1] = {bytes(pack(random_query(seed), kQueryBits)),
                                     bytes(expected_response(random_query(seed)))};
    }
  }

  std::unique_ptr<BatchScheduler> scheduler(std::chrono::milliseconds check_interval,
                                            const Canary* canary) {
    return std::make_unique<BatchScheduler>(
        *database_.engine, database_.manifest.layout,
        BatchLimits{.batch_max = 6, .queue_max = 8, .check_interval = check_interval}, &observer_,
        std::vector<SharedPackingTable>{}, canary);
  }
  std::string ask(BatchScheduler& scheduler, uint64_t seed) {
    return ask_and_wait(scheduler, bytes_in(pack(random_query(seed), kQueryBits)));
  }

  const std::shared_ptr<DoubtfulEngine::Told> told_ = std::make_shared<DoubtfulEngine::Told>();
  const LoadedDatabase database_ =
      server_testing::tiny_database(std::make_unique<DoubtfulEngine>(told_));
  Canary canary_;
  FailureObserver observer_;
};

TEST_F(EngineCheckTest, IsMadeInBatchesOfAllSizesBeforeAnythingIsAnswered) {
  const auto scheduler = this->scheduler(std::chrono::hours(1), &canary_);
  const std::vector<size_t> sizes = {1, 2, 3, 4, 6};
  EXPECT_EQ(told_->sizes(), sizes);
  EXPECT_EQ(ask(*scheduler, 7), expected_response(random_query(7)));
  EXPECT_EQ(told_->sizes().size(), sizes.size() + 1);
}

// No scheduler is made for an engine that is wrong, in whichever size.
TEST_F(EngineCheckTest, ThatFailsAtFirstRefusesTheEngine) {
  for (const size_t size : {1, 2, 3, 4, 6}) {
    told_->wrong_size = size;
    EXPECT_THROW(scheduler(std::chrono::hours(1), &canary_), DeviceLostError);
    EXPECT_EQ(told_->sizes().back(), size);
  }
}

TEST_F(EngineCheckTest, IsMadeAgainAndAgainWhileNobodyAsks) {
  const auto scheduler = this->scheduler(std::chrono::milliseconds(1), &canary_);
  told_->batch.wait_for(5 + 5 + 1);  // two rounds of all sizes
  EXPECT_EQ(ask(*scheduler, 7), expected_response(random_query(7)));
  told_->wrong_size = DoubtfulEngine::Told::kAll;
  observer_.failures.wait_for(1);
  EXPECT_TRUE(observer_.lost);
  EXPECT_THROW(ask(*scheduler, 7), SchedulerStopped);
  scheduler->stop();
  EXPECT_EQ(observer_.failures.count(), 1u);
}

// However many queries wait: between two batches.
TEST_F(EngineCheckTest, IsMadeWhileQueriesNeverEnd) {
  const auto scheduler = this->scheduler(std::chrono::milliseconds(1), &canary_);
  std::atomic<bool> is_over = false;
  std::thread client([&] {
    for (uint64_t seed = 0; !is_over; ++seed) {
      try {
        ask(*scheduler, seed);
      } catch (const std::exception&) {
        return;  // of an engine that was found wrong
      }
    }
  });
  told_->wrong_size = 3;  // no client's batch has this size
  observer_.failures.wait_for(1);
  EXPECT_TRUE(observer_.lost);
  is_over = true;
  client.join();
}

TEST_F(EngineCheckTest, IsNotMadeWithoutACanary) {
  const auto scheduler = this->scheduler(std::chrono::milliseconds(0), nullptr);
  for (uint64_t seed = 0; seed < 20; ++seed) ask(*scheduler, seed);
  EXPECT_EQ(told_->sizes(), std::vector<size_t>(20, 1));
}

// Those in the engine and those that wait: all are told, and the engine's late answer is dropped.
TEST(AbandonedScheduler, FailsAllWhoWait) {
  const auto control = std::make_shared<TestEngine::Control>();
  const LoadedDatabase database =
      server_testing::tiny_database(std::make_unique<TestEngine>(control));
  BatchScheduler scheduler(*database.engine, database.manifest.layout, {4, 8});
  const std::string query = pack(random_query(3), kQueryBits);
  control->hold();
  std::vector<std::shared_ptr<PendingAnswer>> answers;
  Events done;
  const auto ask = [&](const std::string& queries) {
    answers.push_back(scheduler.ask(bytes_in(queries), BatchScheduler::Clock::time_point::max(),
                                    [&] { done.happen(); }));
  };
  ask(query);
  control->wait_for_batches(1);
  ask(query + query);
  ask(query);
  scheduler.abandon();
  done.wait_for(3);
  for (const auto& answer : answers) {
    EXPECT_TRUE(answer->is_done());
    EXPECT_EQ(answer->outcome(), PendingAnswer::Outcome::kEngineFailed);
  }
  EXPECT_THROW(scheduler.ask(bytes_in(query)), SchedulerStopped);
  control->release();
  scheduler.stop();
  EXPECT_EQ(done.count(), 3u) << "each once";
}

}  // namespace
}  // namespace blindfuse
