// Describes a matrix in memory to the tensor memory accelerator.
#pragma once

#include <cuda.h>

#include "cuda/device/tensor_shape.h"

namespace blindfuse {

// bytes: the matrix, aligned to 16. The driver makes the map. The program finds the driver when it
// runs, so it is not linked. Throws ResourceError, which says why, if there is no driver that can
// make the map.
CUtensorMap make_tensor_map(const void* bytes, const TensorShape& shape);

}  // namespace blindfuse
