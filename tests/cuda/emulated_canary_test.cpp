// A GPU that computes responses of right products wrong is found out by queries of the server's own
// whose responses the host knows: before it answers a client, and then again and again.
#include <gtest/gtest.h>

#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "cuda/cuda_engine.h"
#include "host/engines/canary_response.h"
#include "host/server/serving/batch_scheduler.h"
#include "src/arithmetic/packing_table.h"
#include "src/arithmetic/ring/prime_field.h"
#include "src/base/errors.h"
#include "src/protocol/public_polynomials.h"
#include "tests/client/seeded_random.h"
#include "tests/cuda/fake_faults.h"
#include "tests/cuda/fake_runtime.h"
#include "tests/cuda/small_problem.h"
#include "tests/support.h"

namespace blindfuse {
namespace {

using support::SeededRandom;

constexpr uint64_t kCanaryRows = 320, kCanaryColumns = 41;

// What a scheduler reports.
class Failure final : public BatchObserver {
 public:
  void on_waited(std::chrono::duration<double>) override {}
  void on_batch(size_t, std::chrono::duration<double>) override {}
  void on_failure(const std::exception& error) override {
    const std::lock_guard lock(mutex_);
    lost_ = dynamic_cast<const DeviceLostError*>(&error) != nullptr;
    text_ = error.what();
    changed_.notify_all();
  }
  // Waits for it; "" if the device is not lost.
  std::string text() {
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [this] { return !text_.empty(); });
    return lost_ ? text_ : "";
  }

 private:
  std::mutex mutex_;
  std::condition_variable changed_;
  bool lost_ = false;
  std::string text_;
};

class EmulatedCudaCanary : public ::testing::Test {
 protected:
  EmulatedCudaCanary() : matrix_(random_.octets(kCanaryRows * kCanaryColumns)) {
    layout_.lwe = find_lwe_params("lwe-1288");
    layout_.row_count = kCanaryRows;
    layout_.shard_count = kCanaryColumns;
    layout_.record = {.digest_bytes = 0, .length_bytes = 0, .value_bytes = 1};
    layout_.query_bits = 26;
    layout_.response_bits = 13;
    canary_.words = plain_product::query_words(random_, kCanaryRows, layout_.query_bits);
    canary_.products = plain_product::product(matrix_, canary_.words);
  }

  // Of one pack, in the packed mode.
  void pack() {
    layout_.lwe = find_lwe_params("ring-2048");
    tables_ = {plain_product::random_table(random_)};
  }
  // Of two levels, with a short key, so that an emulator is soon through.
  void add_second_level() {
    pack();
    layout_.second = SecondLevel{
        .group_shards = 2, .query_bits = 25, .mask_bits = 19, .response_bits = 17, .key_order = 2};
    ChaChaKey seed{};
    seed[0] = 1;
    polynomials_.emplace(seed);
  }

  // A scheduler whose engine has answered the canary right.
  void start(size_t batch_max, std::chrono::milliseconds interval) {
    std::optional<SecondLevelPolynomials> second;
    SecondLevelSpec spec;
    if (layout_.second) spec = second.emplace(layout_, *polynomials_).spec(layout_);
    complete_canary(canary_, layout_, tables_, 1, seeded_random(142), second ? &spec : nullptr);
    engine_ = make_cuda_engine({"mma"}, 0, kCanaryRows, kCanaryColumns);
    engine_->set_columns(0, matrix_);
    engine_->seal();
    failure_ = std::make_unique<Failure>();
    scheduler_.emplace(*engine_, layout_,
                       BatchLimits{.batch_max = batch_max, .check_interval = interval},
                       failure_.get(), tables_, &canary_, polynomials_ ? &*polynomials_ : nullptr);
  }
  void start_often(size_t batch_max) { start(batch_max, std::chrono::milliseconds(1)); }
  void stop() {
    scheduler_.reset();
    engine_.reset();
  }

  const fake_cuda::Anew anew_;
  SeededRandom random_{140};
  const std::vector<uint8_t> matrix_;
  Layout layout_;
  std::vector<SharedPackingTable> tables_;
  std::optional<ring::PublicPolynomials> polynomials_;
  Canary canary_;
  std::unique_ptr<Failure> failure_;
  std::unique_ptr<Engine> engine_;
  std::optional<BatchScheduler> scheduler_;
};

// Each is found in the first check after it begins, whatever earlier checks have left.
TEST_F(EmulatedCudaCanary, NoticesAFaultOfRounding) {
  for (const char* fault : {"skip=round_products", "spoil=round_products", "drop=cudaMemcpy2DAsync",
                            "alter=cudaMemcpy2DAsync"}) {
    SCOPED_TRACE(fault);
    start_often(4);
    const fake_cuda::ScopedFaults faults(fault);
    const std::string text = failure_->text();
    EXPECT_EQ(text.substr(0, 34), "the kernels of rounding are wrong:");
    EXPECT_NE(text.find("with the matrix of 320 rows and 41 columns"), std::string::npos) << text;
    EXPECT_THROW(scheduler_->ask(canary_.exchanges[0].query), SchedulerStopped);
    stop();
  }
}

TEST_F(EmulatedCudaCanary, NoticesAFaultOfPackingAndOfTheSecondLevel) {
  for (const char* fault : {"spoil=finish_packs", "skip=second_products"}) {
    if (fault == std::string("skip=second_products")) {
      add_second_level();
    } else {
      pack();
    }
    start_often(1);
    const fake_cuda::ScopedFaults faults(fault);
    const std::string text = failure_->text();
    EXPECT_EQ(text.substr(0, 33), "the kernels of packing are wrong:") << text;
    stop();
  }
}

// Otherwise the clients of another epoch would get its responses until the process ends.
TEST_F(EmulatedCudaCanary, WithholdsWhatOtherPipelinesHaveComputed) {
  start(1, std::chrono::hours(1));
  const auto engine = make_cuda_engine({"mma"}, 0, kCanaryRows, kCanaryColumns);
  engine->set_columns(0, matrix_);
  engine->seal();
  const auto other =
      engine->make_answer_pipeline({layout_.query_bits, layout_.response_bits}, 2, 1);
  for (size_t slot = 0; slot < 2; ++slot) other->put(slot, canary_.exchanges[0].query);
  other->begin(0, 1);
  EXPECT_FALSE(other->finish().empty());
  other->begin(1, 1);
  stop();
  const fake_cuda::ScopedFaults faults("skip=round_products");
  EXPECT_THROW(start(1, std::chrono::hours(1)), DeviceLostError);
  EXPECT_THROW(other->finish(), DeviceLostError);
  EXPECT_THROW(other->begin(0, 1), DeviceLostError);
}

// No client is answered by an engine that is wrong from the beginning, in a batch of any size.
TEST_F(EmulatedCudaCanary, RefusesAnEngineThatIsWrongAtFirst) {
  for (const char* fault : {"skip=round_products", "spoil=round_products@4"}) {
    const fake_cuda::ScopedFaults faults(fault);
    EXPECT_THROW(start(8, std::chrono::hours(1)), DeviceLostError) << fault;
  }
  start(8, std::chrono::hours(1));
  stop();
}

}  // namespace
}  // namespace blindfuse
