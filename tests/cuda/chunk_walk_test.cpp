// The order in which a scan's blocks go over the matrix: all of it, evenly, and close together.
#include "cuda/scan/kernels/chunk_walk.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <set>
#include <utility>
#include <vector>

#include "tests/support.h"

namespace blindfuse {
namespace {

using support::SeededRandom;

struct Place {
  uint32_t tile;
  uint32_t step;
  auto operator<=>(const Place&) const = default;
};

std::vector<Place> walk_of(uint32_t tiles, uint32_t steps, uint32_t walker, uint32_t walkers) {
  ChunkWalk walk(tiles, steps, walker, walkers);
  std::vector<Place> places;
  for (uint32_t i = 0; i < walk.total(); ++i) {
    places.push_back({walk.tile(), walk.step()});
    const Place before = places.back();
    const bool ended = walk.advance();
    if (i + 1 == walk.total()) break;
    // A piece that is not over goes on in its tile with the next step.
    if (!ended) {
      EXPECT_EQ(walk.tile(), before.tile);
      EXPECT_EQ(walk.step(), before.step + 1);
    }
  }
  return places;
}

// Every place of the matrix: chunk by chunk, tile by tile, step by step.
std::vector<Place> all_places(uint32_t tiles, uint32_t steps) {
  std::vector<Place> places;
  for (uint32_t chunk = 0; chunk < steps; chunk += 16) {
    for (uint32_t tile = 0; tile < tiles; ++tile) {
      for (uint32_t step = chunk; step < std::min(chunk + 16, steps); ++step) {
        places.push_back({tile, step});
      }
    }
  }
  return places;
}

TEST(ChunkWalk, VisitsEveryPlaceOnceAndEvenly) {
  SeededRandom random(520);
  std::vector<std::pair<std::pair<uint32_t, uint32_t>, uint32_t>> problems = {
      {{1, 1}, 1},   {{1, 16}, 1},   {{1, 17}, 3},   {{32, 1024}, 132}, {{9, 922}, 264},
      {{5, 15}, 75}, {{5, 16}, 132}, {{7, 160}, 70}, {{1, 3200}, 200},  {{3, 33}, 3},
  };
  for (int i = 0; i < 200; ++i) {
    const auto tiles = static_cast<uint32_t>(random.between(1, 12));
    const auto steps = static_cast<uint32_t>(random.between(1, 120));
    problems.push_back({{tiles, steps}, static_cast<uint32_t>(random.between(1, 60))});
  }
  for (const auto& [size, walkers] : problems) {
    const auto [tiles, steps] = size;
    std::vector<Place> visited;
    for (uint32_t walker = 0; walker < walkers; ++walker) {
      const std::vector<Place> places = walk_of(tiles, steps, walker, walkers);
      // No walker has two steps more than another.
      const size_t even = uint64_t{tiles} * steps / walkers;
      ASSERT_GE(places.size() + 1, even);
      ASSERT_LE(places.size(), even + 1);
      visited.insert(visited.end(), places.begin(), places.end());
    }
    std::ranges::sort(visited);
    std::vector<Place> all = all_places(tiles, steps);
    std::ranges::sort(all);
    ASSERT_EQ(visited, all) << tiles << " tiles, " << steps << " steps, " << walkers << " walkers";
  }
}

// What the second-level cache has to keep: walkers that keep pace are in few chunks at a time. As
// many as they have pieces at once, and one more where a turn begins in the midst of a chunk.
TEST(ChunkWalk, StaysWithinFewChunks) {
  constexpr uint32_t kSteps = 1024;
  for (const uint32_t tiles : {5u, 9u, 16u, 32u, 64u}) {
    for (const uint32_t walkers : {108u, 132u, 216u, 264u}) {
      std::vector<std::vector<Place>> walks;
      for (uint32_t w = 0; w < walkers; ++w) walks.push_back(walk_of(tiles, kSteps, w, walkers));
      for (size_t i = 0; i < walks.front().size(); i += 5) {
        std::set<uint32_t> chunks;
        for (const auto& walk : walks) {
          if (i < walk.size()) chunks.insert(walk[i].step / kChunkSteps);
        }
        ASSERT_LE(chunks.size(), walkers / tiles + 2)
            << tiles << " tiles, " << walkers << " walkers, step " << i;
      }
    }
  }
}

// Whole pieces, except the rest: each piece costs additions to the products.
TEST(ChunkWalk, AddsToProductsOncePerPiece) {
  for (uint32_t walker = 0; walker < 132; ++walker) {
    ChunkWalk walk(32, 1024, walker, 132);  // 2048 pieces, 15 each and a rest of 68
    uint32_t ended = 0, left = walk.total();
    EXPECT_NEAR(left, 248, 1);
    while (left-- > 0) ended += walk.advance() || left == 0 ? 1 : 0;
    EXPECT_GE(ended, 16u);
    EXPECT_LE(ended, 17u);
  }
}

}  // namespace
}  // namespace blindfuse
