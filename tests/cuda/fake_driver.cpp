// The stand-in for the CUDA runtime comes with its driver.
#include "tests/cuda/fake_driver.h"

#include <algorithm>

#include "cuda/device/driver_library.h"
#include "tests/cuda/tensor_maps.h"

namespace blindfuse {

bool is_cuda_driver_installed() { return true; }

namespace fake_cuda {

CUresult encode_tensor_map(CUtensorMap* map, CUtensorMapDataType type, cuuint32_t rank,
                           void* address, const cuuint64_t* sizes, const cuuint64_t* strides,
                           const cuuint32_t* box, const cuuint32_t* element_strides,
                           CUtensorMapInterleave interleave, CUtensorMapSwizzle swizzle,
                           CUtensorMapL2promotion l2_promotion, CUtensorMapFloatOOBfill oob_fill) {
  emulator::TensorMapArguments arguments;
  arguments.data_type = type;
  arguments.rank = rank;
  arguments.address = address;
  const uint32_t dimensions = std::min(rank, emulator::kTensorRankMax);
  std::copy_n(sizes, dimensions, arguments.sizes);
  std::copy_n(strides, dimensions == 0 ? 0 : dimensions - 1, arguments.strides);
  std::copy_n(box, dimensions, arguments.box);
  std::copy_n(element_strides, dimensions, arguments.element_strides);
  arguments.interleave = interleave;
  arguments.swizzle = swizzle;
  arguments.l2_promotion = l2_promotion;
  arguments.oob_fill = oob_fill;
  return emulator::make_map(map, arguments).empty() ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

}  // namespace fake_cuda
}  // namespace blindfuse
