// What the stand-in for the driver has of the driver's own functions.
#pragma once

#include <cuda.h>

namespace blindfuse::fake_cuda {

// cuTensorMapEncodeTiled
CUresult encode_tensor_map(CUtensorMap* map, CUtensorMapDataType type, cuuint32_t rank,
                           void* address, const cuuint64_t* sizes, const cuuint64_t* strides,
                           const cuuint32_t* box, const cuuint32_t* element_strides,
                           CUtensorMapInterleave interleave, CUtensorMapSwizzle swizzle,
                           CUtensorMapL2promotion l2_promotion, CUtensorMapFloatOOBfill oob_fill);

}  // namespace blindfuse::fake_cuda
