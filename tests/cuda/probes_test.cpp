// The arithmetic of the probes of a GPU (bench/probes), which no emulator runs: which bytes are
// read, what the tensor memory accelerator is told, and what products in shared memory come to.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <set>
#include <utility>
#include <vector>

#include "bench/probes/reduction_walk.h"
#include "bench/probes/shared_product.h"
#include "bench/probes/tensor_shape.h"
#include "bench/probes/tile_walk.h"

namespace blindfuse::probes {
namespace {

constexpr uint64_t kGiB = uint64_t{1} << 30;
// Columns that lie together, and those of 40,960, 131,072 and 1,179,648 rows.
constexpr uint64_t kPitches[] = {128, 40'960, 131'072, 1'179'648};

TEST(ProbeTiles, HaveEveryByteOnce) {
  for (const uint64_t pitch : {128, 384, 640}) {
    const TileWalk walk = make_tile_walk(pitch, pitch * 128 * 3);
    ASSERT_EQ(walk.bytes(), pitch * 128 * 3);
    std::vector<int> times(walk.bytes());
    for (uint32_t tile = 0; tile < walk.tile_count; ++tile) {
      for (uint32_t chunk = 0; chunk < kTileChunks; ++chunk) {
        const uint64_t first = chunk_offset(walk, tile, chunk);
        ASSERT_EQ(first % kChunkBytes, 0u);
        for (uint64_t byte = first; byte < first + kChunkBytes; ++byte) ++times.at(byte);
      }
    }
    EXPECT_EQ(std::ranges::count(times, 1), static_cast<ptrdiff_t>(walk.bytes())) << pitch;
  }
}

TEST(ProbeTiles, LieWhereTheyShould) {
  const TileWalk contiguous = make_tile_walk(128, kGiB);
  EXPECT_EQ(chunk_offset(contiguous, 5, 0), 5u * 16'384);
  EXPECT_EQ(chunk_offset(contiguous, 5, 9), 5u * 16'384 + 144);
  // The second column's first chunk of the third step of the second 128 columns.
  const TileWalk walk = make_tile_walk(40'960, kGiB);
  EXPECT_EQ(chunk_offset(walk, 320 + 2, 8), 129u * 40'960 + 256);
}

TEST(ProbeTiles, FollowOneAnotherWithoutDivisions) {
  for (const uint64_t pitch : {128, 384}) {
    const TileWalk walk = make_tile_walk(pitch, pitch * 128 * 3);
    for (uint32_t first = 0; first < walk.tile_count; ++first) {
      TileCursor cursor(walk, first);
      for (uint32_t i = 0; i < 2 * walk.tile_count; ++i, cursor.advance()) {
        EXPECT_EQ(cursor.offset(), chunk_offset(walk, (first + i) % walk.tile_count, 0))
            << pitch << ' ' << first << ' ' << i;
      }
    }
  }
}

TEST(ProbeTiles, FillTheRoomThatThereIs) {
  for (const uint64_t pitch : kPitches) {
    const TileWalk walk = make_tile_walk(pitch, 4 * kGiB);
    EXPECT_LE(walk.bytes(), 4 * kGiB);
    EXPECT_GT(walk.bytes(), 4 * kGiB - pitch * 128);
    EXPECT_EQ(walk.bytes() % (pitch * 128), 0u);
  }
}

TEST(ProbeTiles, AreSharedEvenly) {
  const TileWalk walk = make_tile_walk(1'179'648, 4 * kGiB);
  for (const uint32_t blocks : {1u, 3u, 132u, 528u}) {
    EXPECT_EQ(first_tile(walk, 0, blocks), 0u);
    EXPECT_EQ(first_tile(walk, blocks, blocks), walk.tile_count);
    for (uint32_t block = 0; block < blocks; ++block) {
      const uint32_t count = first_tile(walk, block + 1, blocks) - first_tile(walk, block, blocks);
      EXPECT_GE(count, walk.tile_count / blocks);
      EXPECT_LE(count, walk.tile_count / blocks + 1);
    }
  }
}

TEST(ProbeTiles, HaveWordsWhoseSumIsKnown) {
  uint32_t sum = 0;
  for (uint32_t count = 0; count < 1'000; ++count) {
    EXPECT_EQ(sum_of_words(count), sum) << count;
    sum += count * kWordFactor;
  }
  // By hand: 2^30 words are 2^29 (2^30 - 1) times the factor, and that is odd.
  EXPECT_EQ(sum_of_words(kGiB), 0u - (uint32_t{1} << 29) * kWordFactor);
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

constexpr uint32_t kAllColumns[] = {16, 32, 64, 96, 128, 192, 256};

TEST(ProbeProduct, HasEveryWordInAPlaceOfItsOwn) {
  for (const uint32_t columns : kAllColumns) {
    EXPECT_EQ(set_bytes(columns) % 1024, 0u) << "eight rows of the swizzle";
    std::set<uint32_t> offsets;
    for (uint32_t row = 0; row < kRowsOfA + columns; ++row) {
      for (uint32_t word = 0; word < kRowWords; ++word) offsets.insert(word_offset(row, word));
    }
    EXPECT_EQ(offsets.size(), set_bytes(columns) / 4);
    EXPECT_EQ(*offsets.rbegin(), set_bytes(columns) - 4);
  }
  // By hand: chunk 0 of row 1 is where chunk 1 would be; chunk 1 of row 9 where chunk 0 would be.
  EXPECT_EQ(word_offset(1, 0), 128u + 16);
  EXPECT_EQ(word_offset(9, 5), 9u * 128 + 4);
  EXPECT_EQ(word_offset(8, 5), 8u * 128 + 20);
}

TEST(ProbeProduct, HasEverySumInOneThread) {
  for (const uint32_t columns : kAllColumns) {
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

// Bits that look random: clocks and power are those of real queries.
TEST(ProbeProduct, HasBytesOfAllKinds) {
  std::vector<int> times(256);
  for (uint32_t row = 0; row < kRowsOfA + 256; ++row) {
    for (uint32_t word = 0; word < kRowWords; ++word) {
      for (uint32_t byte = 0; byte < 4; ++byte) {
        ++times[random_word(0, row, word) >> 8 * byte & 0xff];
      }
    }
  }
  const int expected = static_cast<int>((kRowsOfA + 256) * kRowBytes / 256);  // 192 of each
  EXPECT_GT(*std::ranges::min_element(times), expected / 2);
  EXPECT_LT(*std::ranges::max_element(times), expected * 3 / 2);
}

TEST(ProbeReductions, AreCountedAsTheyAreMade) {
  for (const uint32_t passes : {1u, 3u, 20u}) {
    for (const uint32_t sharers : {1u, 2u, 33u}) {
      const ReductionWalk walk{7 * kReduceColumns, 4, passes, sharers};
      for (const uint32_t blocks : {1u, 6u, 40u}) {
        std::vector<uint32_t> times(walk.tile_count());
        for (uint32_t block = 0; block < blocks; ++block) {
          for (uint32_t pass = 0; pass < passes; ++pass) {
            ++times[reduced_tile(walk, block, pass)];
          }
        }
        for (uint32_t tile = 0; tile < walk.tile_count(); ++tile) {
          EXPECT_EQ(times_reduced(walk, blocks, tile), times[tile]);
        }
      }
    }
  }
}

}  // namespace
}  // namespace blindfuse::probes
