// The matrix of a walk, in the tensor memory accelerator's terms. Plain C++, for tests.
#pragma once

#include "bench/probes/tile_walk.h"
#include "cuda/device/tensor_shape.h"

namespace blindfuse::probes {

constexpr TensorShape tensor_shape(const TileWalk& walk) {
  const uint64_t columns = uint64_t{walk.tile_count} / walk.steps * kPieces;
  return {{uint64_t{walk.steps} * kPieceBytes, columns}, walk.pitch, {kPieceBytes, kPieces}};
}

}  // namespace blindfuse::probes
