// Which device is current for which thread.
#include <cuda_runtime_api.h>
#include <gtest/gtest.h>

#include <memory>
#include <thread>

#include "cuda/device/memory.h"
#include "cuda/device/stream.h"
#include "tests/cuda/fake_faults.h"
#include "tests/cuda/fake_runtime.h"
#include "tests/cuda/small_problem.h"

namespace blindfuse::small_problem {
namespace {

// A thread that has another device current computes on the engine's own.
TEST(EmulatedCudaCurrentDevice, EnginesFindTheirDeviceOnAnyThread) {
  const fake_cuda::ScopedFaults two("devices=2");
  auto engine = make_cuda_engine({}, 1, kRows, kColumns);
  std::thread([&] {
    engine->set_columns(0, problem().columns(0, kColumns));
    engine->seal();
    auto pipeline = engine->make_answer_pipeline(kBits, kQueries, kQueries);
    std::thread([&] { problem().expect_right(*pipeline); }).join();
    std::thread([&] { pipeline.reset(); }).join();
    std::thread([&] { problem().expect_right(*engine); }).join();
    std::thread([&] { problem().expect_right_panels(*engine); }).join();
  }).join();
  cudaSetDevice(0);
  engine.reset();
}

TEST(EmulatedCudaCurrentDeviceDeathTest, AWrongCurrentDeviceIsFound) {
  EXPECT_DEATH(
      {
        fake_cuda::set_faults("devices=2");
        cudaSetDevice(0);
        const Stream stream;
        const DeviceMemory<uint32_t> words(4);
        cudaSetDevice(1);
        int kernel = 0;
        fake_cuda::launch("none", &kernel, 0, stream.get(), [](fake_cuda::LaunchFault) {});
      },
      "another than the current device");
}

}  // namespace
}  // namespace blindfuse::small_problem
