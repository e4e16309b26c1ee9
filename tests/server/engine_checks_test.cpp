// The scheduler's part in finding out that an engine computes wrong, or hangs: canaries while there
// are no batches, and the watchdog.
#include <gtest/gtest.h>

#include <atomic>
#include <condition_variable>
#include <mutex>
#include <thread>

#include "host/server/serving/batch_scheduler.h"
#include "host/server/serving/engine_watchdog.h"
#include "host/system/device_calls.h"
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

// An engine whose pipelines tell of their checks.
class CheckedEngine final : public support::PlainEngine {
 public:
  struct Told {
    Events checks;
    std::atomic<bool> failing = false;
    std::atomic<const Canary*> canary = nullptr;
  };

  explicit CheckedEngine(std::shared_ptr<Told> told)
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
    void begin(size_t first, size_t count) override { pipeline_->begin(first, count); }
    std::span<const uint8_t> finish() override { return pipeline_->finish(); }
    void set_canary(const Canary& canary, std::chrono::milliseconds) override {
      told_->canary = &canary;
    }
    void check() override {
      told_->checks.happen();
      if (told_->failing) throw DeviceLostError("the test's canary is wrong");
    }

   private:
    const std::unique_ptr<AnswerPipeline> pipeline_;
    const std::shared_ptr<Told> told_;
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
  std::unique_ptr<BatchScheduler> scheduler(std::chrono::milliseconds check_interval,
                                            const Canary* canary) {
    return std::make_unique<BatchScheduler>(
        *database_.engine, database_.manifest.layout,
        BatchLimits{.batch_max = 4, .queue_max = 8, .check_interval = check_interval}, &observer_,
        std::vector<SharedPackingTable>{}, canary);
  }

  const std::shared_ptr<CheckedEngine::Told> told_ = std::make_shared<CheckedEngine::Told>();
  const LoadedDatabase database_ =
      server_testing::tiny_database(std::make_unique<CheckedEngine>(told_));
  const Canary canary_{};
  FailureObserver observer_;
};

TEST_F(EngineCheckTest, IsMadeBeforeAnythingIsAnswered) {
  {
    const auto scheduler = this->scheduler(std::chrono::hours(1), &canary_);
    EXPECT_EQ(told_->canary.load(), &canary_);
    ask_and_wait(*scheduler, bytes_in(pack(random_query(1), kQueryBits)));
    EXPECT_EQ(told_->checks.count(), 1u);
  }
}

// No scheduler is made for an engine that is wrong.
TEST_F(EngineCheckTest, ThatFailsAtFirstRefusesTheEngine) {
  told_->failing = true;
  EXPECT_THROW(scheduler(std::chrono::hours(1), &canary_), DeviceLostError);
  EXPECT_EQ(told_->checks.count(), 1u);
}

TEST_F(EngineCheckTest, IsMadeAgainAndAgainWhileNobodyAsks) {
  const auto scheduler = this->scheduler(std::chrono::milliseconds(1), &canary_);
  told_->checks.wait_for(5);
  EXPECT_EQ(ask_and_wait(*scheduler, bytes_in(pack(random_query(1), kQueryBits))),
            expected_response(random_query(1)));
  told_->failing = true;
  observer_.failures.wait_for(1);
  EXPECT_TRUE(observer_.lost);
  told_->failing = false;
  scheduler->stop();
}

TEST_F(EngineCheckTest, IsNotMadeWithoutACanary) {
  const auto scheduler = this->scheduler(std::chrono::milliseconds(0), nullptr);
  for (uint64_t seed = 0; seed < 20; ++seed) {
    ask_and_wait(*scheduler, bytes_in(pack(random_query(seed), kQueryBits)));
  }
  EXPECT_EQ(told_->checks.count(), 0u);
}

// Those in the engine and those that wait: all are told, and the engine's late answer is dropped.
TEST(AbandonedScheduler, FailsAllWhoWait) {
  const auto control = std::make_shared<TestEngine::Control>();
  const LoadedDatabase database =
      server_testing::tiny_database(std::make_unique<TestEngine>(control));
  BatchScheduler scheduler(*database.engine, database.manifest.layout, {4, 8});
  EXPECT_EQ(scheduler.busy_since(), std::nullopt);
  const std::string query = pack(random_query(3), kQueryBits);
  const auto before = BatchScheduler::Clock::now();
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
  ASSERT_TRUE(scheduler.busy_since());
  EXPECT_GE(*scheduler.busy_since(), before);
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

// A clock that a test moves.
class ManualClock {
 public:
  void set(std::chrono::seconds ahead) { offset_ = ahead.count(); }
  WatchdogOptions options() {
    return {.look_every = std::chrono::milliseconds(1), .clock = [this] {
              return std::chrono::steady_clock::now() + std::chrono::seconds(offset_.load());
            }};
  }

 private:
  std::atomic<int64_t> offset_ = 0;
};

TEST(EngineWatchdog, TellsOnceOfAnEngineThatHangs) {
  const auto control = std::make_shared<TestEngine::Control>();
  const auto epoch = server_testing::tiny_epoch(control);
  const ServedEpochs epochs(epoch);
  ManualClock clock;
  const auto calls = std::make_shared<DeviceCalls>();
  Events looks, hangs;
  const EngineWatchdog watchdog(
      calls, &epochs, clock.options(), [&] { looks.happen(); }, [&] { hangs.happen(); });
  // However late it is, an engine that is idle does not hang.
  clock.set(std::chrono::hours(1));
  looks.wait_for(looks.count() + 2);
  clock.set(std::chrono::seconds(0));
  looks.wait_for(looks.count() + 2);
  control->hold();
  auto answer = ask_later(epoch->scheduler(), bytes_in(pack(random_query(1), kQueryBits)));
  control->wait_for_batches(1);
  looks.wait_for(looks.count() + 2);
  clock.set(std::chrono::seconds(20));
  looks.wait_for(looks.count() + 2);
  EXPECT_EQ(hangs.count(), 0u);
  clock.set(std::chrono::seconds(31));
  hangs.wait_for(1);
  control->release();
  EXPECT_EQ(answer.get(), expected_response(random_query(1)));
  EXPECT_EQ(hangs.count(), 1u);
}

// An epoch whose grace has ended stays where the watchdog sees it as long as its engine is busy,
// and no thread waits for it.
TEST(EngineWatchdog, SeesTheEngineOfAnEpochThatLeaves) {
  const auto control = std::make_shared<TestEngine::Control>();
  auto old = server_testing::tiny_epoch(control);
  BatchScheduler& scheduler = old->scheduler();
  ServedEpochs epochs(std::move(old));
  control->hold();
  auto answer = ask_later(scheduler, bytes_in(pack(random_query(1), kQueryBits)));
  control->wait_for_batches(1);
  const auto now = ServedEpochs::Clock::now();
  epochs.replace(server_testing::tiny_epoch(std::make_shared<TestEngine::Control>()), now);
  EXPECT_EQ(epochs.retire(now), 0u);
  ManualClock clock;
  const auto calls = std::make_shared<DeviceCalls>();
  Events hangs;
  {
    const EngineWatchdog watchdog(
        calls, &epochs, clock.options(), [] {}, [&] { hangs.happen(); });
    clock.set(std::chrono::seconds(31));
    hangs.wait_for(1);
  }
  control->release();
  EXPECT_EQ(answer.get(), expected_response(random_query(1)));
  EXPECT_EQ(epochs.retire(now), 1u);
}

TEST(EngineWatchdog, LeavesAProcessorAllTheTimeItTakes) {
  const auto control = std::make_shared<TestEngine::Control>();
  const auto epoch = server_testing::tiny_epoch(control);
  const ServedEpochs epochs(epoch);
  ManualClock clock;
  const auto calls = std::make_shared<DeviceCalls>();
  Events looks, hangs;
  WatchdogOptions options = clock.options();
  options.judges_batches = false;
  const EngineWatchdog watchdog(
      calls, &epochs, options, [&] { looks.happen(); }, [&] { hangs.happen(); });
  control->hold();
  auto answer = ask_later(epoch->scheduler(), bytes_in(pack(random_query(1), kQueryBits)));
  control->wait_for_batches(1);
  clock.set(std::chrono::hours(100));
  looks.wait_for(looks.count() + 2);
  control->release();
  EXPECT_EQ(answer.get(), expected_response(random_query(1)));
  EXPECT_EQ(hangs.count(), 0u);
}

TEST(EngineWatchdog, TakesAnEngineThatComesBackForAWorkingOne) {
  const auto control = std::make_shared<TestEngine::Control>();
  const auto epoch = server_testing::tiny_epoch(control);
  const ServedEpochs epochs(epoch);
  ManualClock clock;
  const auto calls = std::make_shared<DeviceCalls>();
  Events looks, hangs;
  const EngineWatchdog watchdog(
      calls, &epochs, clock.options(), [&] { looks.happen(); }, [&] { hangs.happen(); });
  for (uint64_t seed = 0; seed < 3; ++seed) {
    control->hold();
    auto answer = ask_later(epoch->scheduler(), bytes_in(pack(random_query(seed), kQueryBits)));
    control->wait_for_batches(seed + 1);
    clock.set(std::chrono::seconds(20));
    looks.wait_for(looks.count() + 2);
    clock.set(std::chrono::seconds(0));
    looks.wait_for(looks.count() + 2);
    control->release();
    answer.get();
  }
  EXPECT_EQ(hangs.count(), 0u);
}

// Whoever makes it, and whether or not anything is served.
TEST(EngineWatchdog, TellsOfACallOfTheDeviceThatDoesNotReturn) {
  ManualClock clock;
  const auto calls = std::make_shared<DeviceCalls>();
  Events looks, hangs;
  const EngineWatchdog watchdog(
      calls, nullptr, clock.options(), [&] { looks.happen(); }, [&] { hangs.happen(); });
  {
    const DeviceCalls::Call call(calls, "one that returns");
    clock.set(std::chrono::seconds(20));
    looks.wait_for(looks.count() + 2);
  }
  clock.set(std::chrono::seconds(100));
  looks.wait_for(looks.count() + 2);
  EXPECT_EQ(hangs.count(), 0u);
  clock.set(std::chrono::seconds(0));
  const DeviceCalls::Call start(calls, "one that is allowed more", std::chrono::hours(1));
  looks.wait_for(looks.count() + 2);
  clock.set(std::chrono::minutes(30));
  looks.wait_for(looks.count() + 2);
  EXPECT_EQ(hangs.count(), 0u);
  clock.set(std::chrono::minutes(61));
  hangs.wait_for(1);
}

TEST(EngineWatchdog, TellsOfALateCallAfterAnEarlierOneThatIsAllowedMore) {
  ManualClock clock;
  const auto calls = std::make_shared<DeviceCalls>();
  Events looks, hangs;
  const EngineWatchdog watchdog(
      calls, nullptr, clock.options(), [&] { looks.happen(); }, [&] { hangs.happen(); });
  const DeviceCalls::Call start(calls, "one that is allowed more", std::chrono::hours(2));
  const DeviceCalls::Call late(calls, "one that hangs");
  clock.set(std::chrono::seconds(31));
  hangs.wait_for(1);
}

}  // namespace
}  // namespace blindfuse
