// The benchmark's reads, for the emulator.
#include "tests/cuda/emulator.h"

#include "bench/cuda/read_all.cu"
