// The order in which the blocks of a scan on tensor cores go over the matrix. Plain C++: kernels
// and tests take the same.
#pragma once

#include <cstdint>

namespace blindfuse {

// Steps of a chunk: 2,048 rows.
constexpr uint32_t kChunkSteps = 16;

// The part of one of `walkers` blocks in a product of `tiles` tiles of columns times `step_count`
// steps of rows.
//
// A chunk is kChunkSteps steps; the last one is shorter. A piece is a tile's part of a chunk.
// Pieces follow one another tile by tile, chunk by chunk. The walkers take whole pieces of whole
// chunks in turns, walker w the pieces w, w + walkers, w + 2 walkers, ... They share the remaining
// pieces, fewer than walkers, and the last chunk evenly. Each gets neighbouring steps.
//
// So all walkers are within walkers / tiles + 2 chunks at any time: limbs are read from memory once
// and stay in the second-level cache while they are needed. Every walker has as many steps as any
// other, or one more. Each piece ends with an addition to the products: 4 / 2048 bytes for each
// query and byte of the matrix.
class ChunkWalk {
 public:
  // tiles, step_count and walkers are at least 1; walker is less than walkers.
  constexpr ChunkWalk(uint32_t tiles, uint32_t step_count, uint32_t walker, uint32_t walkers)
      : tiles_(tiles),
        step_count_(step_count),
        stride_tiles_(walkers % tiles),
        stride_steps_(walkers / tiles * kChunkSteps) {
    const uint64_t whole_pieces = uint64_t{tiles} * (step_count / kChunkSteps);
    turns_left_ = static_cast<uint32_t>(whole_pieces / walkers);
    const uint64_t taken = uint64_t{turns_left_} * walkers * kChunkSteps;
    const uint64_t rest = uint64_t{tiles} * step_count - taken;
    const uint64_t begin = taken + rest * walker / walkers;
    const uint64_t end = taken + rest * (walker + 1) / walkers;
    total_ = turns_left_ * kChunkSteps + static_cast<uint32_t>(end - begin);
    if (const uint64_t whole = whole_pieces * kChunkSteps; begin < whole) {
      const auto piece = begin / kChunkSteps;
      rest_tile_ = static_cast<uint32_t>(piece % tiles);
      rest_step_ = static_cast<uint32_t>(piece / tiles * kChunkSteps + begin % kChunkSteps);
    } else if (const uint32_t last = step_count % kChunkSteps; last > 0) {
      rest_tile_ = static_cast<uint32_t>((begin - whole) / last);
      rest_step_ = step_count - last + static_cast<uint32_t>((begin - whole) % last);
    }
    tile_ = turns_left_ > 0 ? walker % tiles : rest_tile_;
    step_ = turns_left_ > 0 ? walker / tiles * kChunkSteps : rest_step_;
  }

  // Steps of the whole walk.
  constexpr uint32_t total() const { return total_; }
  constexpr uint32_t tile() const { return tile_; }
  constexpr uint32_t step() const { return step_; }

  // Moves to the next step. Returns whether the piece is over: then the tile may be another one,
  // and the step need not be the next. After the last one it is anywhere.
  constexpr bool advance() {
    if (++step_ % kChunkSteps != 0 && step_ != step_count_) return false;
    if (turns_left_ == 1) {
      turns_left_ = 0;
      tile_ = rest_tile_;
      step_ = rest_step_;
      return true;
    }
    step_ = (step_ - 1) / kChunkSteps * kChunkSteps;
    if (turns_left_ > 0) {
      --turns_left_;
      tile_ += stride_tiles_;
      step_ += stride_steps_;
    } else {
      ++tile_;
    }
    if (tile_ >= tiles_) {
      tile_ -= tiles_;
      step_ += kChunkSteps;
    }
    return true;
  }

 private:
  uint32_t tiles_;
  uint32_t step_count_;
  uint32_t stride_tiles_;  // from one piece to that of the next turn
  uint32_t stride_steps_;
  uint32_t turns_left_ = 0;  // whole pieces, with the one that it is in
  uint32_t rest_tile_ = 0;   // where its part of the rest begins
  uint32_t rest_step_ = 0;
  uint32_t total_ = 0;
  uint32_t tile_ = 0;
  uint32_t step_ = 0;
};

}  // namespace blindfuse
