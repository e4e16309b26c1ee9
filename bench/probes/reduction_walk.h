// Additions to products as the scans' epilogues make them: the block, the addend and the product of
// each. Plain C++, for the device and for tests.
#pragma once

#include <cstdint>

namespace blindfuse::probes {

inline constexpr uint32_t kReduceThreads = 256;
inline constexpr uint32_t kReduceColumns = 128;  // of a tile: 16 of each warp

// Block b adds to the products of all queries with the columns of one tile after another, `passes`
// tiles, and begins with the tile that is number b / sharers.
struct ReductionWalk {
  uint32_t column_count;  // a multiple of 128
  uint32_t query_count;   // a multiple of 4
  uint32_t passes;
  uint32_t sharers;  // blocks that add to the same tile at the same time

  constexpr uint32_t tile_count() const { return column_count / kReduceColumns; }
  constexpr uint64_t product_count() const { return uint64_t{query_count} * column_count; }
  // Additions of a block.
  constexpr uint64_t additions() const { return uint64_t{passes} * kReduceColumns * query_count; }
};

constexpr uint32_t reduced_tile(const ReductionWalk& walk, uint32_t block, uint32_t pass) {
  return (block / walk.sharers + pass) % walk.tile_count();
}

// A product gets this value in each addition.
constexpr uint32_t reduced_value(uint32_t query, uint32_t column) {
  return query * 0x0101'0101u + column * 2 + 1;
}

// The number of additions to a tile by all blocks, which are this many.
constexpr uint32_t times_reduced(const ReductionWalk& walk, uint32_t blocks, uint32_t tile) {
  uint32_t times = 0;
  for (uint32_t block = 0; block < blocks; ++block) {
    // The tile's turn comes after this many passes, and then after every tile_count().
    const uint32_t distance =
        (tile + walk.tile_count() - block / walk.sharers % walk.tile_count()) % walk.tile_count();
    times += (walk.passes + walk.tile_count() - 1 - distance) / walk.tile_count();
  }
  return times;
}

}  // namespace blindfuse::probes
