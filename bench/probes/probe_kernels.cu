#include "bench/probes/probe_kernels.h"

#include "bench/probes/kernels/multiply_shared.cuh"
#include "bench/probes/kernels/read_tensor.cuh"
#include "bench/probes/kernels/read_tiles.cuh"
#include "bench/probes/kernels/reduce_products.cuh"
#include "cuda/device/launch.cuh"
#include "src/base/errors.h"

namespace blindfuse::probes {
namespace {

static_assert(kStagesMax == kTensorStagesMax);
constexpr uint32_t kProductColumns[] = {16, 32, 64, 96, 128, 192, 256};

template <uint32_t kLoads>
void start_read_tiles_of(const char* name, const TileWalk& walk, const uint8_t* bytes,
                         uint32_t passes, bool spread, uint32_t blocks, uint32_t* sum,
                         cudaStream_t stream) {
  launch_kernel(name, read_tiles<kLoads>, dim3(blocks), kReadThreads, 0, stream, walk, bytes,
                passes, spread, sum);
}

template <int kColumns>
void start_multiply_of(const char* name, uint32_t rounds, uint32_t blocks, uint32_t* hashes,
                       uint64_t* clock, cudaStream_t stream) {
  constexpr uint32_t kShared = kProductSets * set_bytes(kColumns);
  static_assert(kShared <= 227 << 10, "a block has so much shared memory");
  allow_shared(multiply_rounds<kColumns>, kShared);
  launch_kernel(name, multiply_rounds<kColumns>, dim3(blocks), kProductThreads, kShared, stream,
                rounds, hashes, clock);
}

}  // namespace

void start_fill(uint32_t* words, uint64_t count, cudaStream_t stream) {
  constexpr uint32_t kBlocks = 1024;
  launch_kernel("fill_words", fill_words, dim3(kBlocks), kReadThreads, 0, stream, words, count);
}

void start_read_tiles(const LoadPlan& plan, const TileWalk& walk, const uint8_t* bytes,
                      uint32_t passes, bool spread, uint32_t blocks, uint32_t* sum,
                      cudaStream_t stream) {
  const auto start = [&](auto* start_of, const char* name) {
    start_of(name, walk, bytes, passes, spread, blocks, sum, stream);
  };
  switch (plan.loads) {
    case 1:
      return start(start_read_tiles_of<1>, "read_tiles<1>");
    case 2:
      return start(start_read_tiles_of<2>, "read_tiles<2>");
    default:
      invariant(plan.loads == 4, "there is a kernel for so many loads");
      return start(start_read_tiles_of<4>, "read_tiles<4>");
  }
}

void start_read_tensor(const CUtensorMap& map, const TileWalk& walk, uint32_t stages,
                       uint32_t blocks, uint32_t* sum, cudaStream_t stream) {
  invariant(stages >= 1 && stages <= kStagesMax, "there are barriers for the stages");
  const uint32_t shared = tensor_shared_bytes(stages);
  allow_shared(read_tensor, shared);
  launch_kernel("read_tensor", read_tensor, dim3(blocks), kTensorThreads, shared, stream, map, walk,
                stages, sum);
}

std::span<const uint32_t> product_columns() { return kProductColumns; }

void start_multiply_rounds(uint32_t columns, uint32_t rounds, uint32_t blocks, uint32_t* hashes,
                           uint64_t* clock, cudaStream_t stream) {
  const auto start = [&](auto* start_of, const char* name) {
    start_of(name, rounds, blocks, hashes, clock, stream);
  };
  switch (columns) {
    case 16:
      return start(start_multiply_of<16>, "multiply_rounds<16>");
    case 32:
      return start(start_multiply_of<32>, "multiply_rounds<32>");
    case 64:
      return start(start_multiply_of<64>, "multiply_rounds<64>");
    case 96:
      return start(start_multiply_of<96>, "multiply_rounds<96>");
    case 128:
      return start(start_multiply_of<128>, "multiply_rounds<128>");
    case 192:
      return start(start_multiply_of<192>, "multiply_rounds<192>");
    default:
      invariant(columns == 256, "there is a kernel for so many columns");
      return start(start_multiply_of<256>, "multiply_rounds<256>");
  }
}

void start_reduce(const ReductionWalk& walk, uint32_t blocks, uint32_t* products,
                  cudaStream_t stream) {
  launch_kernel("reduce_products", reduce_products, dim3(blocks), kReduceThreads, 0, stream, walk,
                products);
}

}  // namespace blindfuse::probes
