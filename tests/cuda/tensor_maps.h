// What a tensor map of the emulator holds, and what the driver demands of one. Plain C++: nothing
// of CUDA is needed.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>

#include "cuda/device/tensor_shape.h"

namespace blindfuse::emulator {

inline constexpr size_t kTensorMapBytes = 128;
inline constexpr size_t kTensorMapAlignment = 64;
inline constexpr uint32_t kTensorRankMax = 5;

// cuTensorMapEncodeTiled's arguments; enumerators as the numbers that cuda.h gives them.
struct TensorMapArguments {
  int data_type = 0;  // CU_TENSOR_MAP_DATA_TYPE_UINT8
  uint32_t rank = 2;
  const void* address = nullptr;
  uint64_t sizes[kTensorRankMax] = {};
  uint64_t strides[kTensorRankMax - 1] = {};
  uint32_t box[kTensorRankMax] = {};
  uint32_t element_strides[kTensorRankMax] = {1, 1, 1, 1, 1};
  int interleave = 0;    // CU_TENSOR_MAP_INTERLEAVE_NONE
  int swizzle = 0;       // CU_TENSOR_MAP_SWIZZLE_NONE
  int l2_promotion = 0;  // CU_TENSOR_MAP_L2_PROMOTION_NONE
  int oob_fill = 0;      // CU_TENSOR_MAP_FLOAT_OOB_FILL_NONE
};
TensorMapArguments arguments_for(const void* bytes, const TensorShape& shape);

// Which of the requirements in cuda.h, at cuTensorMapEncodeTiled, the arguments do not meet, or
// what of them is not emulated (types other than bytes, other ranks than 2, interleaved ones, other
// swizzles than 128 bytes, strides of elements); "" where the map is made.
std::string make_map(void* map, const TensorMapArguments& arguments);

struct TiledMap {
  const uint8_t* address;
  TensorShape shape;
};
// Nothing where make_map() made no map.
std::optional<TiledMap> read_map(const void* map);

}  // namespace blindfuse::emulator
