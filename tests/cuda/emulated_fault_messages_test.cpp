// What is said of a fault on a device: which batches and kernels were running.
#define THRUST_DEVICE_SYSTEM THRUST_DEVICE_SYSTEM_CPP
#include <gtest/gtest.h>

#include <new>
#include <string>

#include "cuda/checks/thrust_call.cuh"
#include "cuda/device/device_loss.h"
#include "cuda/device/launch_trail.h"
#include "cuda/device/stream.h"
#include "src/base/errors.h"
#include "tests/cuda/fake_faults.h"
#include "tests/cuda/small_problem.h"

namespace blindfuse::small_problem {
namespace {

TEST(EmulatedCudaFaultMessages, AreNamedWithWhatWasRunning) {
  const auto engine = engine_with(0);
  engine->seal();
  const auto pipeline = engine->make_answer_pipeline(kBits, kQueries, kQueries);
  problem().expect_right(*pipeline);
  const fake_cuda::ScopedFaults faults("fault=scan_mma<16>");
  try {
    pipeline->begin(0, 4);
    pipeline->finish();
    ADD_FAILURE();
  } catch (const DeviceLostError& error) {
    // Not what was finished before.
    const std::string text = error.what();
    EXPECT_NE(
        text.find("; in the device since the last good wait: a batch of 4 queries of 200 rows "
                  "and 37 columns, cut_bit_sequences, scan_mma<16>"),
        std::string::npos)
        << text;
    EXPECT_EQ(text.find("batch of 2"), std::string::npos) << text;
  }
}

// Two batches are under way, and either may have done it.
TEST(EmulatedCudaFaultMessages, NameBothBatchesThatWereRunning) {
  const auto engine = engine_with(0);
  engine->seal();
  const auto pipeline = engine->make_answer_pipeline(kBits, kQueries, kQueries);
  const fake_cuda::ScopedFaults faults("fault=scan_dp4a<2>");
  try {
    pipeline->begin(0, 2);
    pipeline->begin(2, 3);
    pipeline->finish();
    ADD_FAILURE();
  } catch (const DeviceLostError& error) {
    const std::string text = error.what();
    EXPECT_NE(text.find("a batch of 2 queries"), std::string::npos) << text;
    EXPECT_NE(text.find("scan_dp4a<2>"), std::string::npos) << text;
  }
}

// A batch with many buckets has two launches for each.
TEST(EmulatedCudaFaultMessages, NameABatchWhateverItsNumberOfLaunches) {
  const Stream stream;
  launch_trail::note(stream.get(), "a batch of 9 queries");
  for (int bucket = 0; bucket < 400; ++bucket) {
    launch_trail::note(stream.get(), "cut_bit_sequences");
    launch_trail::note(stream.get(), "scan_mma<16>");
  }
  const std::string text = launch_trail::text();
  launch_trail::forget(stream.get(), launch_trail::position());
  EXPECT_NE(text.find("a batch of 9 queries, cut_bit_sequences"), std::string::npos) << text;
}

// Thrust says of every error of cudaMalloc that memory is short.
TEST(EmulatedCudaFaultMessages, TellALostDeviceFromAFullOne) {
  const Stream stream;
  const auto allocate_in_vain = [&] {
    call_thrust("a checksum", [&] {
      (void)policy_of(stream.get());
      throw std::bad_alloc();
    });
  };
  try {
    allocate_in_vain();
    ADD_FAILURE();
  } catch (const DeviceLostError& error) {
    ADD_FAILURE() << error.what();
  } catch (const ResourceError& error) {
    EXPECT_EQ(std::string(error.what()).substr(0, 42),
              "no room for a checksum on the device: std:");
  }
  const fake_cuda::ScopedFaults faults("lose=cudaMemGetInfo:700");
  try {
    allocate_in_vain();
    ADD_FAILURE();
  } catch (const DeviceLostError& error) {
    EXPECT_NE(std::string(error.what()).find("cudaErrorIllegalAddress"), std::string::npos)
        << error.what();
  } catch (const ResourceError& error) {
    ADD_FAILURE() << error.what();
  }
}

}  // namespace
}  // namespace blindfuse::small_problem
