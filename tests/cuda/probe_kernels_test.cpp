// The probes of a GPU (bench/probes): kernels that the emulator can run read and add what they are
// told to; and the arithmetic of the others.
#include <gtest/gtest.h>

#include <cstdint>
#include <set>
#include <utility>
#include <vector>

#include "tests/cuda/emulator.h"
#include "tests/cuda/kernel_support.h"
#include "tests/cuda/tensor_maps.h"

#include "bench/probes/kernels/read_tensor.cuh"
#include "bench/probes/kernels/read_tiles.cuh"
#include "bench/probes/kernels/reduce_products.cuh"
#include "bench/probes/shared_product.h"
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

constexpr uint64_t kGiB = uint64_t{1} << 30;
// Columns that lie together, and those of 40,960, 131,072 and 1,179,648 rows.
constexpr uint64_t kPitches[] = {128, 40'960, 131'072, 1'179'648};

TEST(ProbeTiles, LieWhereTheyShould) {
  const TileWalk contiguous = make_tile_walk(128, kGiB);
  EXPECT_EQ(chunk_offset(contiguous, 5, 0), 5u * 16'384);
  EXPECT_EQ(chunk_offset(contiguous, 5, 9), 5u * 16'384 + 144);
  // The second column's first chunk of the third step of the second 128 columns.
  const TileWalk walk = make_tile_walk(40'960, kGiB);
  EXPECT_EQ(chunk_offset(walk, 320 + 2, 8), 129u * 40'960 + 256);
}

TEST(ProbeTiles, FillTheRoomThatThereIs) {
  for (const uint64_t pitch : kPitches) {
    const TileWalk walk = make_tile_walk(pitch, 4 * kGiB);
    EXPECT_LE(walk.bytes(), 4 * kGiB);
    EXPECT_GT(walk.bytes(), 4 * kGiB - pitch * 128);
    EXPECT_EQ(walk.bytes() % (pitch * 128), 0u);
  }
}

TEST(ProbeTensor, TakesEveryMatrixThatIsRead) {
  for (const uint64_t pitch : kPitches) {
    const TileWalk walk = make_tile_walk(pitch, 4 * kGiB);
    const TensorShape shape = tensor_shape(walk);
    EXPECT_TRUE(is_valid(shape)) << pitch;
    EXPECT_EQ(shape.sizes[0] * shape.sizes[1], walk.bytes());
    EXPECT_EQ(shape.box[0] * shape.box[1], kTileBytes);
    const TilePlace last = tile_place(walk, walk.tile_count - 1);
    EXPECT_EQ(last.row + shape.box[0], shape.sizes[0]);
    EXPECT_EQ(last.column + shape.box[1], shape.sizes[1]);
  }
}

// Each of the driver's conditions by itself.
TEST(ProbeTensor, RefusesWhatTheDriverRefuses) {
  const TensorShape good{{4'096, 256}, 4'096, {128, 128}};
  ASSERT_TRUE(is_valid(good));
  const auto with = [&](auto change) {
    TensorShape shape = good;
    change(shape);
    return is_valid(shape);
  };
  EXPECT_FALSE(with([](TensorShape& s) { s.sizes[1] = 0; }));
  EXPECT_FALSE(with([](TensorShape& s) { s.sizes[1] = (uint64_t{1} << 32) + 1; }));
  EXPECT_FALSE(with([](TensorShape& s) { s.pitch = 4'104; }));
  EXPECT_FALSE(with([](TensorShape& s) { s.pitch = 4'080; }));
  EXPECT_FALSE(with([](TensorShape& s) { s.pitch = uint64_t{1} << 40; }));
  EXPECT_FALSE(with([](TensorShape& s) { s.box[0] = 120; }));
  EXPECT_FALSE(with([](TensorShape& s) { s.box[1] = 0; }));
  EXPECT_FALSE(with([](TensorShape& s) { s.box[1] = 257; }));
  EXPECT_TRUE(with([](TensorShape& s) { s.swizzle = BoxSwizzle::k128; }));
  EXPECT_TRUE(with([](TensorShape& s) { s.box[0] = 144; }));
  EXPECT_FALSE(with([](TensorShape& s) {
    s.box[0] = 144;
    s.swizzle = BoxSwizzle::k128;
  }));
}

TEST(ProbeProduct, HasEverySumInOneThread) {
  for (const uint32_t columns : {16u, 96u, 256u}) {
    std::set<std::pair<uint32_t, uint32_t>> places;
    for (uint32_t thread = 0; thread < kProductThreads; ++thread) {
      for (uint32_t i = 0; i < columns / 2; ++i) {
        const SumPlace place = sum_place(thread, i);
        EXPECT_LT(place.row, kRowsOfA);
        EXPECT_LT(place.column, columns);
        places.emplace(place.row, place.column);
      }
    }
    EXPECT_EQ(places.size(), size_t{kRowsOfA} * columns);
  }
  // The figure of the PTX ISA: T0 has d0 and d1 in row 0, d2 and d3 in row 8, d4 in column 8.
  const auto is_at = [](uint32_t thread, uint32_t i, uint32_t row, uint32_t column) {
    const SumPlace place = sum_place(thread, i);
    return place.row == row && place.column == column;
  };
  EXPECT_TRUE(is_at(0, 0, 0, 0));
  EXPECT_TRUE(is_at(0, 1, 0, 1));
  EXPECT_TRUE(is_at(0, 2, 8, 0));
  EXPECT_TRUE(is_at(0, 3, 8, 1));
  EXPECT_TRUE(is_at(0, 4, 0, 8));
  EXPECT_TRUE(is_at(5, 0, 1, 2));
  EXPECT_TRUE(is_at(31, 7, 15, 15));
  EXPECT_TRUE(is_at(32, 0, 16, 0));
  EXPECT_TRUE(is_at(128, 0, 64, 0));
}

// By way of the bytes in shared memory, as the instruction would find them.
TEST(ProbeProduct, ComesToWhatIsExpected) {
  constexpr uint32_t kColumns = 16;
  uint32_t hash = 0;
  for (uint32_t set = 0; set < kProductSets; ++set) {
    std::vector<uint8_t> shared(set_bytes(kColumns));
    for (uint32_t row = 0; row < kRowsOfA + kColumns; ++row) {
      for (uint32_t word = 0; word < kRowWords; ++word) {
        for (uint32_t byte = 0; byte < 4; ++byte) {
          shared.at(word_offset(row, word) + byte) =
              static_cast<uint8_t>(random_word(set, row, word) >> 8 * byte);
        }
      }
    }
    const auto byte_at = [&](uint32_t row, uint32_t k) {
      const uint32_t chunk = k / 16 ^ row % 8;
      return int32_t{static_cast<int8_t>(shared.at(row * 128 + chunk * 16 + k % 16))};
    };
    for (uint32_t row = 0; row < kRowsOfA; ++row) {
      for (uint32_t column = 0; column < kColumns; ++column) {
        int32_t sum = 0;
        for (uint32_t k = 0; k < 128; ++k) sum += byte_at(row, k) * byte_at(kRowsOfA + column, k);
        hash += (2 * (row * kColumns + column) + 1) * static_cast<uint32_t>(sum);
      }
    }
  }
  EXPECT_EQ(expected_hash(kColumns), hash);
}

}  // namespace
}  // namespace blindfuse::probes
