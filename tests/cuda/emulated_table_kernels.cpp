// The kernels that make packing tables and what starts them, for the emulator.
#include "tests/cuda/emulator.h"

#include "cuda/table_kernels.cu"
