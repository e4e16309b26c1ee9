// How the tensor memory accelerator is told where a matrix lies.
#pragma once

#include <cuda.h>

#include "cuda/device/tensor_shape.h"

namespace blindfuse {

// bytes: the matrix, aligned to 16. The driver makes it, and is found when the program runs, so
// that nothing links it. Throws ResourceError, saying why, when there is no driver that can.
CUtensorMap make_tensor_map(const void* bytes, const TensorShape& shape);

}  // namespace blindfuse
