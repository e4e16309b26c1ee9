#include "cuda/device/tensor_map.h"

#include <cuda_runtime_api.h>

#include <string>

#include "cuda/device/check.h"
#include "src/base/errors.h"

namespace blindfuse {
namespace {

using Encode = decltype(&cuTensorMapEncodeTiled);

Encode find_encode() {
  void* entry = nullptr;
  cudaDriverEntryPointQueryResult result = cudaDriverEntryPointSymbolNotFound;
#if CUDART_VERSION >= 12050
  constexpr unsigned kSince = 12000;  // the version of CUDA that brought it
  BLINDFUSE_CUDA(cudaGetDriverEntryPointByVersion("cuTensorMapEncodeTiled", &entry, kSince,
                                                  cudaEnableDefault, &result));
#else
  BLINDFUSE_CUDA(
      cudaGetDriverEntryPoint("cuTensorMapEncodeTiled", &entry, cudaEnableDefault, &result));
#endif
  if (result != cudaDriverEntryPointSuccess || entry == nullptr) {
    throw ResourceError("the driver has no cuTensorMapEncodeTiled");
  }
  return reinterpret_cast<Encode>(entry);
}

}  // namespace

CUtensorMap make_tensor_map(const void* bytes, const TensorShape& shape) {
  invariant(is_valid(shape), "the shape is one that the driver takes");
  static const Encode encode = find_encode();
  const cuuint64_t sizes[] = {shape.sizes[0], shape.sizes[1]};
  const cuuint64_t strides[] = {shape.pitch};
  const cuuint32_t box[] = {shape.box[0], shape.box[1]};
  const cuuint32_t element_strides[] = {1, 1};
  CUtensorMap map{};
  const CUresult status = encode(
      &map, CU_TENSOR_MAP_DATA_TYPE_UINT8, 2, const_cast<void*>(bytes), sizes, strides, box,
      element_strides, CU_TENSOR_MAP_INTERLEAVE_NONE,
      shape.swizzle == BoxSwizzle::k128 ? CU_TENSOR_MAP_SWIZZLE_128B : CU_TENSOR_MAP_SWIZZLE_NONE,
      CU_TENSOR_MAP_L2_PROMOTION_L2_128B, CU_TENSOR_MAP_FLOAT_OOB_FILL_NONE);
  if (status != CUDA_SUCCESS) {
    throw ResourceError("cuTensorMapEncodeTiled failed: CUresult " +
                        std::to_string(static_cast<int>(status)));
  }
  return map;
}

}  // namespace blindfuse
