// Which engine is taken after which self-test.
#include <cuda_runtime_api.h>
#include <gtest/gtest.h>
#include <stdlib.h>

#include <algorithm>
#include <deque>
#include <string>
#include <vector>

#include "host/engines/checked_engines.h"
#include "src/base/errors.h"
#include "tests/cuda/fake_faults.h"
#include "tests/cuda/fake_runtime.h"

namespace blindfuse {
namespace {

using Outcome = SelfTestResult::Outcome;

// Self-tests with results that a test has written, one after another, and what is said of them.
class EmulatedCudaChoice : public ::testing::Test {
 protected:
  // No test is to read the file of somebody's GPU.
  void SetUp() override { setenv("STATE_DIRECTORY", "/nonexistent", 1); }
  // Of this thread, for the tests after it.
  void TearDown() override {
    unsetenv("STATE_DIRECTORY");
    EXPECT_EQ(cudaSetDevice(0), cudaSuccess);
  }

  static SelfTestResult with(std::vector<SelfTestResult::Check> checks, int devices = 1) {
    SelfTestResult result;
    result.device_count = devices;
    result.device = "a device";
    result.checks = std::move(checks);
    return result;
  }
  static SelfTestResult::Check check(const char* kernel, Outcome outcome = Outcome::kPassed) {
    return {kernel, "5 queries", outcome, outcome == Outcome::kPassed ? "" : "of the test"};
  }

  CheckedEngines choose(const std::string& name, std::deque<SelfTestResult> results,
                        const std::vector<std::string>& parts = {}) {
    results_ = std::move(results);
    return CheckedEngines(
        {name, 1, parts},
        {.on_info = [this](const std::string& text) { infos_.push_back(text); },
         .on_warning = [this](const std::string& text) { warnings_.push_back(text); }},
        [this](const SelfTestOptions& options) {
          tested_.push_back(options);
          if (results_.empty()) throw ResourceError("the self-test hangs before its first check");
          SelfTestResult result = std::move(results_.front());
          results_.pop_front();
          return result;
        });
  }
  std::string error_of(const std::string& name, const std::deque<SelfTestResult>& results,
                       const std::vector<std::string>& parts = {}) {
    try {
      choose(name, results, parts);
    } catch (const UsageError& error) {
      return std::string("usage: ") + error.what();
    } catch (const ResourceError& error) {
      return error.what();
    }
    return "";
  }

  std::deque<SelfTestResult> results_;
  std::vector<std::string> infos_, warnings_;
  std::vector<SelfTestOptions> tested_;
};

TEST_F(EmulatedCudaChoice, TakesTheDeviceWhoseKernelsPass) {
  const auto engines = choose("auto", {with({check("dp4a"), check("mma", Outcome::kWrong)})});
  EXPECT_EQ(engines.device(), "a device");
  EXPECT_EQ(engines.get().make_engine(64, 3)->name(), "cuda:dp4a");
  // What is not used is not checked.
  const auto& without = tested_.at(0).without;
  EXPECT_EQ(without, (std::vector<std::string>{"packing", "tables"}));
}

TEST_F(EmulatedCudaChoice, FallsBackToTheProcessorWithOneWarning) {
  for (const Outcome outcome :
       {Outcome::kWrong, Outcome::kFailed, Outcome::kCrashed, Outcome::kHung}) {
    warnings_.clear();
    const auto engines = choose("auto", {with({check("dp4a", outcome), check("mma", outcome)})});
    EXPECT_FALSE(engines.get().computes_on_device());
    EXPECT_EQ(engines.device(), "");
    ASSERT_EQ(warnings_.size(), 1u);
    EXPECT_NE(warnings_[0].find("CUDA device 0 is not used: a device gives different results "
                                "from the CPU (dp4a, 5 queries: " +
                                std::string(name_of(outcome))),
              std::string::npos)
        << warnings_[0];
  }
}

// One that fails in this process, after its self-test, is not the end of the next one, whose memory
// is given back.
TEST_F(EmulatedCudaChoice, TriesTheNextDeviceWhereOneIsLost) {
  const fake_cuda::ScopedFaults devices("devices=2,fail=cudaSetDevice@0:" +
                                        std::to_string(cudaErrorIllegalAddress));
  const auto engines =
      choose("auto", {with({check("dp4a")}, 2), with({check("dp4a"), check("mma")}, 2)});
  EXPECT_EQ(warnings_.size(), 1u);
  const uint64_t before = fake_cuda::allocated_bytes();
  {
    const auto engine = engines.get().make_engine(64, 3);
    EXPECT_EQ(engine->name(), "cuda@1");
    EXPECT_GT(fake_cuda::allocated_bytes(), before);
  }
  EXPECT_EQ(fake_cuda::allocated_bytes(), before);
}

// With a self-test of its own: the first device does not even come to its first check.
TEST_F(EmulatedCudaChoice, TriesTheNextDeviceWhereOneHangs) {
  const fake_cuda::ScopedFaults devices("devices=2");
  std::vector<int> tested;
  const CheckedEngines engines({"auto", 1, {}}, {}, [&](const SelfTestOptions& options) {
    tested.push_back(options.device);
    if (options.device == 0) throw SelfTestError("it hangs before its first check", 2);
    return with({check("dp4a"), check("mma")}, 2);
  });
  EXPECT_EQ(tested, (std::vector<int>{0, 1}));
  EXPECT_EQ(engines.get().make_engine(64, 3)->name(), "cuda@1");
}

TEST_F(EmulatedCudaChoice, NeedsEveryPartThatIsUsed) {
  const auto packing_wrong = with({check("dp4a"), check("packing", Outcome::kWrong)});
  EXPECT_FALSE(choose("auto", {packing_wrong}, {"packing"}).get().computes_on_device());
  EXPECT_NE(error_of("cuda", {packing_wrong}, {"packing"}).find("packing, 5 queries: wrong"),
            std::string::npos);
  // A part that was not checked has not passed.
  EXPECT_FALSE(choose("auto", {with({check("dp4a")})}, {"tables"}).get().computes_on_device());
}

TEST_F(EmulatedCudaChoice, SaysWhyADeviceThatIsThereCannotBeUsed) {
  SelfTestResult busy;
  busy.why_no_device = "its driver is busy";
  EXPECT_FALSE(choose("auto", {busy}).get().computes_on_device());
  ASSERT_EQ(warnings_.size(), 1u);
  EXPECT_EQ(warnings_[0], "CUDA device 0 is not used: its driver is busy");
  // A self-test that says nothing at all.
  EXPECT_FALSE(choose("auto", {}).get().computes_on_device());
  EXPECT_EQ(warnings_.at(1),
            "CUDA device 0 is not used: the self-test hangs before its first check");
}

TEST_F(EmulatedCudaChoice, WarnsOfNothingWhereThereIsNoDevice) {
  SelfTestResult absent;
  absent.why_no_device = "no CUDA device";
  absent.is_absent = true;
  EXPECT_FALSE(choose("auto", {absent}).get().computes_on_device());
  EXPECT_TRUE(warnings_.empty());
  EXPECT_EQ(infos_, std::vector<std::string>{"no GPU: no CUDA device"});
}

TEST_F(EmulatedCudaChoice, RefusesANamedDeviceOrKernelThatFails) {
  const auto mma_wrong = with({check("dp4a"), check("mma", Outcome::kWrong)});
  EXPECT_NE(error_of("cuda:mma", {mma_wrong})
                .find("the kernel cuda:mma gives different results from the CPU"),
            std::string::npos);
  EXPECT_EQ(error_of("cuda:dp4a", {mma_wrong}), "");
  EXPECT_NE(error_of("cuda:abacus", {mma_wrong}).find("usage: there is no CUDA kernel \"abacus\""),
            std::string::npos);
}

TEST_F(EmulatedCudaChoice, ChecksNothingWhereTheProcessorIsNamed) {
  EXPECT_EQ(choose("cpu", {}).get().make_engine(64, 3)->name().substr(0, 4), "cpu:");
  EXPECT_NE(error_of("abacus", {}).find("usage: there is no engine \"abacus\""), std::string::npos);
  EXPECT_TRUE(tested_.empty());
}

// A later epoch may need what the first did not.
TEST_F(EmulatedCudaChoice, ChecksLaterWhatWasNotChecked) {
  auto engines = choose("cuda", {with({check("dp4a")}), with({check("packing")})});
  engines.check_parts({});
  EXPECT_EQ(tested_.size(), 1u);
  engines.check_parts({"packing"});
  ASSERT_EQ(tested_.size(), 2u);
  EXPECT_TRUE(std::ranges::count(tested_[1].without, "dp4a"));
  EXPECT_FALSE(std::ranges::count(tested_[1].without, "packing"));
  engines.check_parts({"packing"});
  EXPECT_EQ(tested_.size(), 2u) << "once";

  auto wrong = choose("cuda", {with({check("dp4a")}), with({check("packing", Outcome::kHung)})});
  EXPECT_THROW(wrong.check_parts({"packing"}), ResourceError);
}

// A device that takes no second process, or lacks memory for a check, says nothing of its kernels:
// the part is not used, and is checked again.
TEST_F(EmulatedCudaChoice, UsesNothingThatCouldNotBeCheckedNow) {
  SelfTestResult exclusive;
  exclusive.why_no_device = "another process has it";
  const SelfTestResult failed = with({check("packing", Outcome::kFailed)});
  auto engines = choose(
      "cuda", {with({check("dp4a")}), exclusive, with({}), failed, with({check("packing")})});
  for (const char* why : {"another process has it", "nothing was checked", "failed, of the test"}) {
    try {
      engines.check_parts({"packing"});
      ADD_FAILURE() << why;
    } catch (const ResourceError& error) {
      EXPECT_NE(std::string(error.what()).find(why), std::string::npos) << error.what();
    }
  }
  engines.check_parts({"packing"});
  EXPECT_EQ(tested_.size(), 5u);
}

}  // namespace
}  // namespace blindfuse
