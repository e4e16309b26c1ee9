// The kernels that make packing tables and what starts them, for the emulator.
#include "tests/cuda/emulator.h"

#include "cuda/packing/table_kernels.cu"
