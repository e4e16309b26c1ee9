// A device that fails at any call of CUDA's, and memory that is short at any allocation: an error
// of the right kind comes out, nothing leaks but what is left to a device that is lost, and what an
// older engine answers stays right.
#include <gtest/gtest.h>
#include <malloc.h>

#include <algorithm>
#include <chrono>
#include <climits>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>

#include "cuda/cuda_engine.h"
#include "src/arithmetic/bit_sequence.h"
#include "src/arithmetic/ring/packing_key_format.h"
#include "src/base/errors.h"
#include "tests/cuda/fake_faults.h"
#include "tests/cuda/fake_runtime.h"
#include "tests/cuda/small_problem.h"

namespace blindfuse::small_problem {
namespace {

// Two epochs of a server, and the work of a build: made, asked, and gone.
void live_whole_life() {
  auto old = engine_with(0);
  auto old_pipeline = pipeline_of(*old);
  problem().expect_right(*old_pipeline);
  const auto next = engine_with(kShared);
  EXPECT_TRUE(next->share_columns(0, kShared, *old));
  const auto pipeline = pipeline_of(*next);
  problem().expect_right(*old_pipeline);
  old_pipeline.reset();
  old.reset();
  problem().expect_right(*pipeline);
  problem().expect_right(*next);
  problem().expect_right_panels(*next);
}

// What comes out; "" when nothing does.
template <typename Work>
std::string error_of(const Work& work) {
  try {
    work();
  } catch (const DeviceLostError&) {
    return "lost";
  } catch (const ResourceError&) {
    return "resource";
  } catch (const UsageError&) {
    return "usage";
  }
  return "";
}

uint64_t calls_of(void (*work)(), const std::string& others) {
  {
    // The first life also asks what the engine keeps until the process ends.
    const fake_cuda::ScopedFaults faults(others);
    work();
  }
  const fake_cuda::ScopedFaults faults(others);
  work();
  return fake_cuda::call_count();
}

// What returns nothing of use, and is called when all else is over.
bool gives_back(const std::string& call) {
  const std::string_view calls[] = {"cudaFree", "cudaFreeHost", "cudaStreamDestroy",
                                    "cudaEventDestroy", "cudaStreamSynchronize"};
  return std::ranges::count(calls, call) > 0;
}

// After a life with this error: to a device that is known to be lost nothing is given back, which
// may not return; and without an error, everything.
void expect_given_back(const std::string& error, uint64_t before, uint64_t n) {
  if (error.empty()) {
    EXPECT_EQ(fake_cuda::allocated_bytes(), before) << "after call " << n;
  } else if (!gives_back(fake_cuda::struck_call())) {
    EXPECT_EQ(fake_cuda::late_give_back_count(), 0u)
        << "after call " << n << ", " << fake_cuda::struck_call();
  }
}

// One life for each call at which the device is lost, and one for each that fails and leaves no
// trace in the calls after it: none is passed over. Nothing needs what is lost with the last calls,
// which only give back. others: faults that there are in addition.
void fail_at_every_call(void (*work)(), bool loses, const std::string& others = "") {
  const uint64_t before = fake_cuda::allocated_bytes();
  const uint64_t calls = calls_of(work, others);
  ASSERT_EQ(fake_cuda::allocated_bytes(), before);
  ASSERT_GT(calls, 50u);
  uint64_t unnoticed = 0;
  for (uint64_t n = 0; n < calls; ++n) {
    {
      const fake_cuda::ScopedFaults faults((loses ? "lose=any@" : "fail=any@") + std::to_string(n) +
                                           (loses ? ":700" : ":719") +
                                           (others.empty() ? "" : "," + others));
      const std::string error = error_of(work);
      const std::string call = fake_cuda::struck_call();
      SCOPED_TRACE(error + " after call " + std::to_string(n) + ", " + call);
      if (loses) {
        EXPECT_TRUE(error == "lost" || (n >= calls / 2 && (error.empty() || error == "resource")));
      } else {
        EXPECT_TRUE(error == "lost" || (error.empty() && gives_back(call)));
      }
      unnoticed += error.empty() ? 1 : 0;
      expect_given_back(error, before, n);
    }
    fake_cuda::begin_anew();
  }
  if (loses) {
    EXPECT_LT(unnoticed, calls / 4);
  }
}

TEST(EmulatedCudaFaults, ALostDeviceComesOutOfEveryCall) {
  fail_at_every_call(live_whole_life, true);
}

TEST(EmulatedCudaFaults, ACallThatFailsOnceIsNotPassedOver) {
  fail_at_every_call(live_whole_life, false);
}

// Packed answers in the same way, of a matrix, tables and keys of zeros, whose packs are zeros.
void live_packed_life() {
  constexpr uint64_t kFewRows = 130, kFewColumns = 9;
  const auto tables = zero_tables(1);
  const auto engine =
      make_cuda_engine({}, 0, kFewRows, kFewColumns, {.batch_max = 1, .pack_count = 1});
  engine->seal();
  Canary canary;
  canary.words.resize(kFewRows);
  canary.products.resize(kFewColumns);
  engine->check_kernels(canary, 1);
  const auto pipeline = engine->make_packed_answer_pipeline(kBits, tables, 1, 1);
  const std::vector<uint8_t> zeros(bit_sequence_bytes(kFewRows, kBits.query) + ring::kKeyBytes);
  pipeline->put(0, zeros);
  pipeline->begin(0, 1);
  const auto response = pipeline->finish();
  EXPECT_EQ(std::ranges::count(response, 0), std::ssize(response));
}

// The tables' 25 MB are taken and given back in every life: from the heap, or the system would
// clear them each time.
class EmulatedCudaPackedFaults : public ::testing::Test {
 protected:
  void SetUp() override {
    mallopt(M_MMAP_MAX, 0);
    mallopt(M_TRIM_THRESHOLD, INT_MAX);
  }
  void TearDown() override {
    mallopt(M_MMAP_MAX, 65'536);
    mallopt(M_TRIM_THRESHOLD, 128 << 10);
  }

  // Tables and sums stay the zeros that they are without the kernels that take an emulator long.
  static constexpr const char* kFast = "skip=cut_table,skip=sum_dp4a";
};

TEST_F(EmulatedCudaPackedFaults, ALostDeviceComesOutOfEveryCall) {
  fail_at_every_call(live_packed_life, true, kFast);
}

TEST_F(EmulatedCudaPackedFaults, ACallThatFailsOnceIsNotPassedOver) {
  fail_at_every_call(live_packed_life, false, kFast);
}

TEST(EmulatedCudaFaults, MemoryThatIsShortLeavesAnOlderEngineAsItWas) {
  const auto old = engine_with(0);
  old->seal();
  const auto old_pipeline = old->make_answer_pipeline(kBits, kQueries, kQueries);
  const auto next_epoch = [&] {
    const auto next = engine_with(kShared);
    EXPECT_TRUE(next->share_columns(0, kShared, *old));
    next->seal();
    problem().expect_right(*next->make_answer_pipeline(kBits, kQueries, kQueries));
    problem().expect_right(*next);
    problem().expect_right_panels(*next);
  };
  next_epoch();
  const uint64_t before = fake_cuda::allocated_bytes();
  for (const char* call : {"cudaMalloc", "cudaMallocHost"}) {
    size_t n = 0;
    for (;; ++n) {
      std::string error;
      {
        const fake_cuda::ScopedFaults faults("fail=" + std::string(call) + "@" + std::to_string(n) +
                                             ":2");
        error = error_of(next_epoch);
      }
      ASSERT_EQ(fake_cuda::allocated_bytes(), before) << call << " " << n;
      problem().expect_right(*old_pipeline);
      if (error.empty()) break;  // there are no more
      EXPECT_EQ(error, "resource") << call << " " << n;
    }
    EXPECT_GT(n, 5u) << call;
  }
}

}  // namespace
}  // namespace blindfuse::small_problem
