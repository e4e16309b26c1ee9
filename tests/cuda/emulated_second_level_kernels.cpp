// The kernels of the second level of packed responses, and what starts them, for the emulator.
#include "tests/cuda/emulator.h"

#include "cuda/packing/second_level_kernels.cu"
