// What tests of single kernels have in common.
#pragma once

#include <gtest/gtest.h>

#include <functional>
#include <stdexcept>
#include <string>
#include <vector>

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

// That the kernel ends with a fault whose text has this part, or, where that is empty, with none.
inline void expect_error(const std::string& part, const std::function<void()>& kernel,
                         dim3 block = 32, size_t shared = 256) {
  const std::string text = error_of([&] { launch(1, block, shared, kernel); });
  EXPECT_TRUE(part.empty() ? text.empty() : text.find(part) != std::string::npos)
      << "\"" << part << "\": " << text;
}

inline TensorMap map_of(const void* bytes, const TensorShape& shape) {
  TensorMap map;
  const std::string why = make_map(&map, arguments_for(bytes, shape));
  if (!why.empty()) throw std::logic_error(why);
  return map;
}

// Whether each barrier, fence, wait and commit of a kernel is needed: the kernel is run as it is,
// and then once for each of these calls, without it.

// A call that nothing would miss, and why. It is the nth one of its kind in a function of a file.
struct Redundant {
  const char* file;
  const char* function;
  Step step;
  int nth;
  const char* reason;
};

inline constexpr const char* kOwnPlaces = "each thread reads what it wrote itself";
// After the walk of scan_mma and scan_wgmma.
inline Redundant last_wait(const char* file, const char* kernel) {
  return {file, kernel, Step::kCopyWait, 2,
          "all groups with something in them were waited for in a step; the last ones are empty"};
}

// A kernel, a tile size of it, and a small problem of several blocks.
struct Subject {
  std::string name;  // the kernel's in the source, then its tile in angle brackets
  // Runs it on memory as it is at first, and returns whether all came out right.
  std::function<bool(const Options&, Report&)> run;
  std::vector<Redundant> redundant = {};
};

// The subjects of all files with tests of kernels.
std::vector<Subject>& subjects();
inline bool add_subjects(const std::vector<Subject>& more) {
  subjects().insert(subjects().end(), more.begin(), more.end());
  return true;
}

}  // namespace blindfuse::emulator
