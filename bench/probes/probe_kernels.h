// Starts the kernels of the probes. All return at once; streams are of the current device.
#pragma once

#include <cuda.h>
#include <cuda_runtime_api.h>

#include <cstdint>
#include <span>

#include "bench/probes/reduction_walk.h"
#include "bench/probes/tile_walk.h"

namespace blindfuse::probes {

// words[i] = i * kWordFactor
void start_fill(uint32_t* words, uint64_t count, cudaStream_t stream);

// Loads of 16 bytes: how many a thread has in flight, and blocks of 256 threads.
struct LoadPlan {
  uint32_t loads;  // 1, 2 or 4
  uint32_t blocks_a_processor;

  constexpr uint32_t threads_a_processor() const { return blocks_a_processor * 256; }
  constexpr uint32_t bytes_in_flight() const { return loads * threads_a_processor() * 16; }
};
// kernels/read_tiles.cuh; blocks: in all.
void start_read_tiles(const LoadPlan& plan, const TileWalk& walk, const uint8_t* bytes,
                      uint32_t passes, bool spread, uint32_t blocks, uint32_t* sum,
                      cudaStream_t stream);

inline constexpr uint32_t kTensorStagesMax = 13;
// kernels/read_tensor.cuh; stages: of 16 KB in flight, up to kTensorStagesMax.
void start_read_tensor(const CUtensorMap& map, const TileWalk& walk, uint32_t stages,
                       uint32_t blocks, uint32_t* sum, cudaStream_t stream);

// N of wgmma that there are kernels for.
std::span<const uint32_t> product_columns();
// kernels/multiply_shared.cuh; columns: one of these.
void start_multiply_rounds(uint32_t columns, uint32_t rounds, uint32_t blocks, uint32_t* hashes,
                           uint64_t* clock, cudaStream_t stream);

// kernels/reduce_products.cuh
void start_reduce(const ReductionWalk& walk, uint32_t blocks, uint32_t* products,
                  cudaStream_t stream);

}  // namespace blindfuse::probes
