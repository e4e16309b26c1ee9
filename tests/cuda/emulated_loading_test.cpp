// When the code of kernels comes to a device.
#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "src/arithmetic/bit_sequence.h"
#include "src/arithmetic/packing_table.h"
#include "tests/cuda/fake_faults.h"
#include "tests/cuda/fake_runtime.h"
#include "tests/cuda/small_problem.h"

namespace blindfuse::small_problem {
namespace {

// Nothing is loaded, or compiled, when a client waits for it.
TEST(EmulatedCudaLoading, NoKernelIsLoadedByAClientsBatch) {
  fake_cuda::forget_kernels();
  {
    const auto engine = engine_with(0);
    problem().expect_right(*pipeline_of(*engine));
    problem().expect_right(*engine);
  }
  // Each with every tile that it has.
  constexpr size_t kMost = 65;
  const std::vector<uint8_t> query(bit_sequence_bytes(kRows, kBits.query));
  for (const std::string_view kernel : {"dp4a", "mma", "wgmma", "wgmma-tma"}) {
    const auto engine = engine_with(0, {std::string(kernel)});
    engine->seal();
    const auto pipeline = engine->make_answer_pipeline(kBits, kMost, kMost);
    for (size_t i = 0; i < kMost; ++i) pipeline->put(i, query);
    for (const size_t count : {1, 2, 3, 4, 8, 16, 32, 33, 65}) {
      pipeline->begin(0, count);
      pipeline->finish();
    }
  }
  // The sums over packing tables, by the same kernels. Their results do not matter here.
  const fake_cuda::ScopedFaults fast(
      "skip=cut_bit_sequences,skip=scan_dp4a,skip=scan_mma,skip=scan_wgmma,skip=scan_wgmma_tma,"
      "skip=cut_table,skip=cut_keys,skip=sum_dp4a,skip=sum_mma,skip=sum_wgmma,skip=finish_packs");
  for (const std::string_view kernel : {"dp4a", "mma", "wgmma", "wgmma-tma"}) {
    const auto engine = make_cuda_engine({std::string(kernel)}, 0, 1, 9);
    engine->seal();
    const auto pipeline = engine->make_packed_answer_pipeline(kBits, zero_tables(1), kMost, kMost);
    for (const size_t count : {1, 2, 3, 4, 8, 16, 32, 33, 65}) {
      pipeline->begin(0, count);
      pipeline->finish();
    }
  }
  std::string late;
  for (const std::string& kernel : fake_cuda::kernels_loaded_late()) late += kernel + " ";
  EXPECT_EQ(late, "");
}

}  // namespace
}  // namespace blindfuse::small_problem
