// What the suite of all engines does not see of packing on a GPU: batches and numbers of packs that
// would take an emulator too long at all points, packing tables that arrive altered, and what is
// said of memory.
#include <gtest/gtest.h>

#include <cstdlib>
#include <vector>

#include "cuda/device/stream.h"
#include "cuda/packing/device_tables.h"
#include "cuda/packing/packing_kernels.h"
#include "src/base/errors.h"
#include "tests/cuda/fake_faults.h"
#include "tests/cuda/sum_problem.h"
#include "tests/support.h"

namespace blindfuse {
namespace {

using emulator::SumProblem;
using support::SeededRandom;

TEST(EmulatedCudaPacking, StartsAKernelForEveryQueryAndPack) {
  SeededRandom random(140);
  for (const auto& [queries, packs] :
       {std::pair<uint32_t, uint32_t>{1, 1}, {16, 9}, {17, 8}, {33, 17}}) {
    const SumProblem problem(random, queries, packs, 200, 1);
    const Stream stream;
    start_sum_points(problem.args(), 1, stream.get());
    stream.wait();
    problem.expect_right();
  }
}

// A table of zeros.
SharedPackingTable empty_table() {
  auto* words = static_cast<uint32_t*>(std::calloc(kTableWords, sizeof(uint32_t)));
  return {words, [](const uint32_t* table) { std::free(const_cast<uint32_t*>(table)); }};
}

TEST(EmulatedCudaPacking, FindsAnAlteredWordOfAPackingTable) {
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
  // In eights of 201 MB: 4.4 GB.
  const std::vector<SharedPackingTable> tables(169);
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
