// A matrix and the boxes of it that are copied at a time, in the tensor memory accelerator's terms.
// Plain C++, for tests.
#pragma once

#include <cstdint>

namespace blindfuse {

// The order of a box in shared memory: its rows of box[0] bytes one after another (kNone), or with
// the 16-byte chunks of each row of 128 bytes exclusive-or-ed with the row's number modulo 8
// (k128).
enum class BoxSwizzle { kNone, k128 };

// A tensor of bytes in two dimensions: along a column, and from column to column.
struct TensorShape {
  uint64_t sizes[2];
  uint64_t pitch;  // from one column to the next
  uint32_t box[2];
  BoxSwizzle swizzle = BoxSwizzle::kNone;

  constexpr uint32_t box_bytes() const { return box[0] * box[1]; }
};

// Checks the conditions of cuda.h for those arguments of cuTensorMapEncodeTiled that are not
// constants: sizes from 1 to 2^32; strides that are multiples of 16, below 2^40, and no less than
// the row that they span; boxes from 1 to 256, with an inner side that is a multiple of 16 bytes
// and, swizzled, no longer than the swizzle.
constexpr bool is_valid(const TensorShape& shape) {
  for (const uint64_t size : shape.sizes) {
    if (size == 0 || size > uint64_t{1} << 32) return false;
  }
  for (const uint32_t side : shape.box) {
    if (side == 0 || side > 256) return false;
  }
  return shape.pitch % 16 == 0 && shape.pitch < uint64_t{1} << 40 &&
         shape.pitch >= shape.sizes[0] && shape.box[0] % 16 == 0 &&
         (shape.swizzle == BoxSwizzle::kNone || shape.box[0] <= 128);
}

}  // namespace blindfuse
