// What tests of single kernels have in common.
#pragma once

#include "tests/cuda/device_memory.h"
#include "tests/cuda/emulator.h"

namespace blindfuse::emulator {

inline constexpr Schedule kSchedules[] = {
    {false, false}, {false, true}, {true, false}, {true, true}};

}  // namespace blindfuse::emulator
