// What the suite of all engines does not see of packing on a GPU: batches that would take an
// emulator too long at all points, by each kernel, packing tables that arrive altered, and what is
// said of memory.
#include <gtest/gtest.h>

#include <cstdlib>
#include <vector>

#include "cuda/device/stream.h"
#include "cuda/packing/device_tables.h"
#include "cuda/packing/packing_kernels.h"
#include "src/base/errors.h"
#include "tests/cuda/fake_faults.h"
#include "tests/cuda/fake_runtime.h"
#include "tests/cuda/sum_problem.h"
#include "tests/support.h"

namespace blindfuse {
namespace {

using emulator::SumProblem;
using support::SeededRandom;

TEST(EmulatedCudaPacking, StartsAKernelForEveryQuery) {
  SeededRandom random(140);
  const auto expect_sums = [&](ScanKernel kernel, const std::vector<uint32_t>& batches) {
    for (const uint32_t queries : batches) {
      const SumProblem problem(random, limb_order_of(kernel), queries);
      const Stream stream;
      start_sums(kernel, problem.args(), stream.get());
      stream.wait();
      problem.expect_right();
    }
  };
  expect_sums(ScanKernel::kDp4a, {1, 2, 3, 7});
  expect_sums(ScanKernel::kMma, {4, 8, 16, 32, 33});
  expect_sums(ScanKernel::kWgmma, {8, 16, 32, 65});
}

TEST(EmulatedCudaPacking, SumsByTheKernelThatScans) {
  EXPECT_EQ(sum_kernel_for(ScanKernel::kDp4a), ScanKernel::kDp4a);
  EXPECT_EQ(sum_kernel_for(ScanKernel::kWgmma), ScanKernel::kWgmma);
  EXPECT_EQ(sum_kernel_for(ScanKernel::kWgmmaTma), ScanKernel::kWgmma);
  EXPECT_EQ(sum_kernel_for(ScanKernel::kMma), ScanKernel::kMma);
}

// A table of zeros.
SharedPackingTable empty_table() {
  auto* words = static_cast<uint32_t*>(std::calloc(kTableWords, sizeof(uint32_t)));
  return {words, [](const uint32_t* table) { std::free(const_cast<uint32_t*>(table)); }};
}

TEST(EmulatedCudaPacking, FindsAnAlteredWordOfAPackingTable) {
  const fake_cuda::Anew anew;
  const SharedPackingTable table = empty_table();
  EXPECT_NO_THROW(DeviceTables({&table, 1}, 0));
  const fake_cuda::ScopedFaults faults("alter=copy@2");
  try {
    const DeviceTables tables({&table, 1}, 0);
    ADD_FAILURE();
  } catch (const ResourceError& error) {
    EXPECT_NE(std::string(error.what()).find("the packing table of pack 0 "), std::string::npos)
        << error.what();
  }
}

TEST(EmulatedCudaPacking, RefusesTablesThatMemoryCannotHold) {
  // Of 25,165,824 bytes: 4.30 GB.
  const std::vector<SharedPackingTable> tables(171);
  try {
    const DeviceTables more_than_there_is_room_for(tables, 0);
    ADD_FAILURE();
  } catch (const ResourceError& error) {
    const std::string message = error.what();
    EXPECT_NE(message.find("CUDA device 0 has 4294967296 free of 4294967296"), std::string::npos)
        << message;
    EXPECT_NE(message.find("--engine cpu"), std::string::npos) << message;
  }
}

}  // namespace
}  // namespace blindfuse
