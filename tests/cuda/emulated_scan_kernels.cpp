// The kernels and what starts them, for the emulator.
#include "tests/cuda/emulator.h"

#include "cuda/scan/scan_kernels.cu"
