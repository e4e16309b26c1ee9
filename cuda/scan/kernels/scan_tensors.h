// The boxes that scan_wgmma_tma copies, in the tensor memory accelerator's terms. Plain C++: the
// code that starts the kernel and the tests share it.
#pragma once

#include <cstdint>

#include "cuda/device/tensor_shape.h"
#include "cuda/scan/kernels/scan_args.h"

namespace blindfuse {

// Columns of a tile. Beyond the last column of the matrix the accelerator brings zeros.
constexpr uint32_t kTensorTileColumns = 128;
constexpr uint32_t kTensorTileBytes = kTensorTileColumns * kStepRows;

constexpr uint32_t tensor_tiles(uint32_t columns) {
  return (columns + kTensorTileColumns - 1) / kTensorTileColumns;
}

// The matrix, in boxes of a tile and a step.
constexpr TensorShape matrix_tensor(const ScanArgs& args) {
  return {{uint64_t{args.step_count} * kStepRows, args.column_count},
          args.column_pitch,
          {kStepRows, kTensorTileColumns},
          BoxSwizzle::k128};
}

// The limbs in LimbOrder::kRows, in boxes of a step and the limb_rows limb rows of a tile of
// queries, at most 256.
constexpr TensorShape limb_tensor(const ScanArgs& args, uint32_t limb_rows) {
  const uint32_t query_tiles = (args.query_count * 4 + limb_rows - 1) / limb_rows;
  return {{uint64_t{args.step_count} * kStepRows, uint64_t{query_tiles} * limb_rows},
          args.limb_pitch,
          {kStepRows, limb_rows},
          BoxSwizzle::k128};
}

}  // namespace blindfuse
