// The kernels that pack responses, and what starts them, for the emulator.
#include "tests/cuda/emulator.h"

#include "cuda/packing/packing_kernels.cu"
