// What tests of single kernels have in common.
#pragma once

#include <stdexcept>
#include <string>

#include "tests/cuda/device_memory.h"
#include "tests/cuda/emulator.h"
#include "tests/cuda/tensor_maps.h"

namespace blindfuse::emulator {

// Of launches that are too long to be watched, of kernels that are watched elsewhere.
inline constexpr Options kUnwatched{.watches = false};

// The kind of the fault that a launch ends with; "" for none.
template <typename Launch>
std::string fault_of(const Launch& launches) {
  try {
    launches();
  } catch (const KernelFault& fault) {
    return name_of(fault.fault());
  }
  return "";
}

// And its message.
template <typename Launch>
std::string error_of(const Launch& launches) {
  try {
    launches();
  } catch (const KernelFault& fault) {
    return fault.what();
  }
  return "";
}

inline TensorMap map_of(const void* bytes, const TensorShape& shape) {
  TensorMap map;
  const std::string why = make_map(&map, arguments_for(bytes, shape));
  if (!why.empty()) throw std::logic_error(why);
  return map;
}

}  // namespace blindfuse::emulator
