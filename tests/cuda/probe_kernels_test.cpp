// Those of the probes' kernels (bench/probes) that the emulator can run: they read and add what
// they are told to.
#include <gtest/gtest.h>

#include <cstdint>

#include "tests/cuda/emulator.h"
#include "tests/cuda/kernel_support.h"
#include "tests/cuda/tensor_maps.h"

#include "bench/probes/kernels/read_tensor.cuh"
#include "bench/probes/kernels/read_tiles.cuh"
#include "bench/probes/kernels/reduce_products.cuh"
#include "bench/probes/tensor_shape.h"

namespace blindfuse::probes {
namespace {

using emulator::launch;
using emulator::Memory;

template <uint32_t kLoads>
void expect_reads(const TileWalk& walk, uint32_t blocks, uint32_t passes, bool spread) {
  Memory<uint32_t> words(walk.bytes() / 4);
  launch(3, kReadThreads, 0, fill_words, words.data(), walk.bytes() / 4);
  Memory<uint32_t> sum(1);
  sum[0] = 7;
  launch(blocks, kReadThreads, 0, read_tiles<kLoads>, walk,
         reinterpret_cast<const uint8_t*>(words.data()), passes, spread, sum.data());
  const uint32_t times = passes == 0 ? 1 : passes * blocks;
  EXPECT_EQ(sum[0], 7 + times * sum_of_words(walk.bytes() / 4))
      << kLoads << " loads, " << blocks << " blocks, " << passes << " passes";
}

TEST(ProbeKernels, ReadEveryWordOnce) {
  const TileWalk walk = make_tile_walk(384, 384 * 128 * 2);
  // Also more blocks than tiles, and tiles that do not come out even.
  for (const uint32_t blocks : {1u, 4u, 9u}) {
    expect_reads<1>(walk, blocks, 0, false);
    expect_reads<2>(walk, blocks, 0, false);
    expect_reads<4>(walk, blocks, 0, false);
  }
}

TEST(ProbeKernels, ReadAllWordsInEveryBlock) {
  const TileWalk walk = make_tile_walk(kPieceBytes, 3 * kTileBytes);
  for (const bool spread : {false, true}) {
    expect_reads<4>(walk, 2, 1, spread);
    expect_reads<4>(walk, 4, 3, spread);
  }
}

void expect_tensor_reads(const TileWalk& walk, uint32_t blocks, uint32_t stages) {
  Memory<uint32_t> words(walk.bytes() / 4);
  launch(3, kReadThreads, 0, fill_words, words.data(), walk.bytes() / 4);
  const TensorMap map = emulator::map_of(words.data(), tensor_shape(walk));
  Memory<uint32_t> sum(1);
  sum[0] = 7;
  launch(blocks, kTensorThreads, tensor_shared_bytes(stages), read_tensor, map, walk, stages,
         sum.data());
  EXPECT_EQ(sum[0], 7 + sum_of_words(walk.bytes() / 4))
      << blocks << " blocks, " << stages << " stages";
}

TEST(ProbeKernels, ReadEveryWordOnceByTensorCopies) {
  const TileWalk walk = make_tile_walk(384, 384 * 128 * 2);
  // Also stages that are filled again, more of them than tiles, and blocks without a tile.
  expect_tensor_reads(walk, 1, 2);
  expect_tensor_reads(walk, 1, 6);
  expect_tensor_reads(walk, 1, kStagesMax);
  expect_tensor_reads(walk, 4, 2);
  expect_tensor_reads(walk, 9, 1);
}

TEST(ProbeKernels, AddToEveryProductAsOftenAsItIsCounted) {
  for (const ReductionWalk& walk :
       {ReductionWalk{3 * kReduceColumns, 8, 2, 1}, ReductionWalk{2 * kReduceColumns, 4, 5, 2}}) {
    constexpr uint32_t kBlocks = 5;
    Memory<uint32_t> products(walk.product_count());
    for (uint32_t& product : products) product = 0;
    launch(kBlocks, kReduceThreads, 0, reduce_products, walk, products.data());
    for (uint32_t query = 0; query < walk.query_count; ++query) {
      for (uint32_t column = 0; column < walk.column_count; ++column) {
        ASSERT_EQ(
            products[query * walk.column_count + column],
            times_reduced(walk, kBlocks, column / kReduceColumns) * reduced_value(query, column))
            << query << ' ' << column;
      }
    }
  }
}

}  // namespace
}  // namespace blindfuse::probes
