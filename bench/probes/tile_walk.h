// A matrix cut into tiles of 16 KB, 128 pieces of 128 bytes each, as the scans read it, and the
// order in which blocks read them. Plain C++, for the device and for tests.
#pragma once

#include <cstdint>

namespace blindfuse::probes {

inline constexpr uint32_t kPieceBytes = 128;
inline constexpr uint32_t kPieces = 128;  // of a tile: columns
inline constexpr uint32_t kTileBytes = kPieces * kPieceBytes;
inline constexpr uint32_t kChunkBytes = 16;  // of a load
inline constexpr uint32_t kPieceChunks = kPieceBytes / kChunkBytes;
inline constexpr uint32_t kTileChunks = kTileBytes / kChunkBytes;

// Tiles follow one another down the columns: after the last piece of 128 columns come the next 128.
// Where columns are one piece long (pitch 128), tiles are contiguous, and so is the whole.
struct TileWalk {
  uint64_t pitch;       // bytes from one column to the next, a multiple of 128
  uint32_t steps;       // pieces of a column
  uint32_t tile_count;  // at least 1

  constexpr uint64_t bytes() const { return uint64_t{tile_count} * kTileBytes; }
};

// The walk has as many columns as there is room for, in whole tiles.
constexpr TileWalk make_tile_walk(uint64_t pitch, uint64_t room) {
  const auto steps = static_cast<uint32_t>(pitch / kPieceBytes);
  return {pitch, steps, static_cast<uint32_t>(room / (pitch * kPieces)) * steps};
}

// The row of a tile's pieces in bytes from the columns' beginnings, and its first column.
struct TilePlace {
  uint32_t row;
  uint32_t column;
};
constexpr TilePlace tile_place(const TileWalk& walk, uint32_t tile) {
  return {tile % walk.steps * kPieceBytes, tile / walk.steps * kPieces};
}

// The place of a chunk of a tile: each piece has eight.
constexpr uint64_t chunk_offset(const TileWalk& walk, uint32_t tile, uint32_t chunk) {
  const TilePlace place = tile_place(walk, tile);
  return (uint64_t{place.column} + chunk / kPieceChunks) * walk.pitch + place.row +
         chunk % kPieceChunks * kChunkBytes;
}

// Goes from a tile to the next, and from the last one to the first: without the divisions above,
// which take longer than a load.
class TileCursor {
 public:
  constexpr TileCursor(const TileWalk& walk, uint32_t tile)
      : steps_(walk.steps),
        tile_count_(walk.tile_count),
        columns_bytes_(walk.pitch * kPieces),
        tile_(tile),
        step_(tile % walk.steps),
        column_offset_(tile / walk.steps * columns_bytes_) {}

  // The place of the tile's first chunk.
  constexpr uint64_t offset() const { return column_offset_ + uint64_t{step_} * kPieceBytes; }

  constexpr void advance() {
    if (++step_ == steps_) {
      step_ = 0;
      column_offset_ += columns_bytes_;
    }
    if (++tile_ == tile_count_) {
      tile_ = step_ = 0;
      column_offset_ = 0;
    }
  }

 private:
  uint32_t steps_;
  uint32_t tile_count_;
  uint64_t columns_bytes_;
  uint32_t tile_;
  uint32_t step_;
  uint64_t column_offset_;
};

// The first tile of a block, where blocks share them evenly, one after another.
constexpr uint32_t first_tile(const TileWalk& walk, uint32_t block, uint32_t blocks) {
  return static_cast<uint32_t>(uint64_t{walk.tile_count} * block / blocks);
}

// Word i of the memory that is read is i times this, so that the sum of the first words is known,
// and the sum shows a word that is left out or read twice.
inline constexpr uint32_t kWordFactor = 0x9e37'79b1;

// The sum of the first `count` words, modulo 2^32.
constexpr uint32_t sum_of_words(uint64_t count) {
  const uint64_t half = count % 2 == 0 ? count / 2 * (count - 1) : (count - 1) / 2 * count;
  return kWordFactor * static_cast<uint32_t>(half);
}

}  // namespace blindfuse::probes
