// Whether each barrier, fence, wait and commit of a kernel is needed: the kernel is run as it is,
// and then once for each of these calls, without it.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "tests/cuda/machine.h"

namespace blindfuse::emulator {

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
