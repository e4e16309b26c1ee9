#include "tests/cuda/tensor_maps.h"

#include <cstring>

namespace blindfuse::emulator {
namespace {

constexpr uint64_t kMark = 0x7e05'0b0e'4d41'5001;
constexpr int kDataTypes = 16;
constexpr int kSwizzle128 = 3;  // CU_TENSOR_MAP_SWIZZLE_128B

struct Stored {
  uint64_t mark;
  TiledMap map;
};
static_assert(sizeof(Stored) <= kTensorMapBytes);

bool is_aligned(const void* address, size_t bytes) {
  return reinterpret_cast<uintptr_t>(address) % bytes == 0;
}

// In the order of cuda.h.
std::string why_refused(const void* map, const TensorMapArguments& a) {
  if (!is_aligned(map, kTensorMapAlignment)) return "tensorMap is not aligned to 64 bytes";
  if (a.data_type < 0 || a.data_type >= kDataTypes) return "tensorDataType is none of the types";
  if (a.rank == 0 || a.rank > kTensorRankMax) return "tensorRank is not from 1 to 5";
  if (!is_aligned(a.address, 16)) return "globalAddress is not aligned to 16 bytes";
  for (uint32_t i = 0; i < a.rank; ++i) {
    if (a.sizes[i] == 0 || a.sizes[i] > uint64_t{1} << 32) return "globalDim is not from 1 to 2^32";
  }
  for (uint32_t i = 0; i + 1 < a.rank; ++i) {
    if (a.strides[i] % 16 != 0) return "globalStrides is not a multiple of 16";
    if (a.strides[i] >= uint64_t{1} << 40) return "globalStrides is not below 2^40";
  }
  for (uint32_t i = 0; i < a.rank; ++i) {
    if (a.box[i] == 0 || a.box[i] > 256) return "boxDim is not from 1 to 256";
  }
  for (uint32_t i = 0; i < a.rank; ++i) {
    if (a.element_strides[i] == 0 || a.element_strides[i] > 8) {
      return "elementStrides is not from 1 to 8";
    }
  }
  if (a.interleave < 0 || a.interleave > 2) return "interleave is none of the layouts";
  if (a.swizzle < 0 || a.swizzle > 6) return "swizzle is none of the patterns";
  if (a.l2_promotion < 0 || a.l2_promotion > 3) return "l2Promotion is none of the sizes";
  if (a.oob_fill < 0 || a.oob_fill > 1) return "oobFill is none of the constants";
  if (a.data_type != 0 || a.rank != 2 || a.interleave != 0) {
    return "not emulated: other than bytes in two dimensions, as they are";
  }
  if (a.strides[0] < a.sizes[0]) return "globalStrides is less than what lies in it";
  if (a.box[0] % 16 != 0) return "boxDim's inner side is not a multiple of 16 bytes";
  if (a.oob_fill != 0) return "oobFill asks for a NaN where elements are no floating-point numbers";
  if (a.swizzle == kSwizzle128 && a.box[0] > 128) {
    return "boxDim's inner side is longer than the swizzle";
  }
  if (a.swizzle != 0 && (a.swizzle != kSwizzle128 || a.box[0] != 128)) {
    return "not emulated: another swizzle than that of rows of 128 bytes";
  }
  if (a.element_strides[1] != 1) return "not emulated: strides of elements";
  return "";
}

}  // namespace

TensorMapArguments arguments_for(const void* bytes, const TensorShape& shape) {
  TensorMapArguments arguments;
  arguments.address = bytes;
  for (uint32_t i = 0; i < 2; ++i) {
    arguments.sizes[i] = shape.sizes[i];
    arguments.box[i] = shape.box[i];
  }
  arguments.strides[0] = shape.pitch;
  arguments.swizzle = shape.swizzle == BoxSwizzle::k128 ? kSwizzle128 : 0;
  return arguments;
}

std::string make_map(void* map, const TensorMapArguments& a) {
  std::string why = why_refused(map, a);
  if (!why.empty()) return why;
  const Stored stored{kMark,
                      {static_cast<const uint8_t*>(a.address),
                       {{a.sizes[0], a.sizes[1]},
                        a.strides[0],
                        {a.box[0], a.box[1]},
                        a.swizzle == 0 ? BoxSwizzle::kNone : BoxSwizzle::k128}}};
  std::memset(map, 0, kTensorMapBytes);
  std::memcpy(map, &stored, sizeof stored);
  return "";
}

std::optional<TiledMap> read_map(const void* map) {
  Stored stored;
  std::memcpy(&stored, map, sizeof stored);
  if (!is_aligned(map, kTensorMapAlignment) || stored.mark != kMark) return std::nullopt;
  return stored.map;
}

}  // namespace blindfuse::emulator
