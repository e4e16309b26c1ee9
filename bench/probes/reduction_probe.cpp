#include <string>
#include <vector>

#include "bench/probes/probe.h"
#include "bench/probes/probe_kernels.h"
#include "cuda/device/check.h"
#include "cuda/device/memory.h"

namespace blindfuse::probes {
namespace {

constexpr uint32_t kColumns = 32'768;
constexpr uint32_t kBlocksAProcessor = 2;
constexpr uint32_t kQueries[] = {16, 64, 128};
constexpr uint32_t kSharers[] = {1, 2, 4, 33};  // 33: all that share a tile of 131,072 rows

bool is_right(const ReductionWalk& walk, uint32_t blocks, const std::vector<uint32_t>& products) {
  for (uint32_t tile = 0; tile < walk.tile_count(); ++tile) {
    const uint32_t times = times_reduced(walk, blocks, tile);
    for (uint32_t query = 0; query < walk.query_count; ++query) {
      for (uint32_t i = 0; i < kReduceColumns; ++i) {
        const uint32_t column = tile * kReduceColumns + i;
        const uint32_t product = products[uint64_t{query} * walk.column_count + column];
        if (product != times * reduced_value(query, column)) return false;
      }
    }
  }
  return true;
}

}  // namespace

void probe_reductions(Probe& probe) {
  const uint32_t blocks = kBlocksAProcessor * probe.device().processor_count;
  const cudaStream_t stream = probe.stream().get();
  for (const uint32_t queries : kQueries) {
    for (const uint32_t sharers : kSharers) {
      // All blocks make 64 M additions together, or a little more.
      const uint32_t passes = (uint32_t{64} << 20) / (blocks * kReduceColumns * queries) + 1;
      const ReductionWalk walk{kColumns, queries, passes, sharers};
      const DeviceMemory<uint32_t> sums(walk.product_count());
      BLINDFUSE_CUDA(cudaDeviceSynchronize());  // all is cleared
      const auto start = [&] { start_reduce(walk, blocks, sums.data(), stream); };
      start();
      std::vector<uint32_t> products(walk.product_count());
      BLINDFUSE_CUDA(cudaMemcpyAsync(products.data(), sums.data(),
                                     products.size() * sizeof(uint32_t), cudaMemcpyDeviceToHost,
                                     stream));
      probe.stream().wait();
      const double seconds = probe.seconds(start);
      const double additions = static_cast<double>(walk.additions()) * blocks;
      const nlohmann::json line = {{"queries", queries},
                                   {"blocks", blocks},
                                   {"blocks_to_a_tile", sharers},
                                   {"additions", additions},
                                   {"bytes", additions * sizeof(uint32_t)},
                                   {"seconds", seconds},
                                   {"additions_per_second", additions / seconds},
                                   {"bytes_per_second", additions * sizeof(uint32_t) / seconds}};
      probe.print(line, additions / seconds,
                  std::to_string(static_cast<uint64_t>(additions / seconds / 1e9)) +
                      " G additions/s, " + std::to_string(queries) + " queries, " +
                      std::to_string(sharers) + " blocks to a tile",
                  is_right(walk, blocks, products));
    }
  }
}

}  // namespace blindfuse::probes
