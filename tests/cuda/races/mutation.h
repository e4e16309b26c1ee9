// Whether kernels are free of races, and whether each barrier, fence, wait and commit of theirs is
// needed: a kernel is run as it is, and then once for each of these calls, without it.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "tests/cuda/races/run.h"

namespace blindfuse::races {

// A call that nothing would miss, and why. It is the nth one of its kind in a function of a file.
struct Redundant {
  const char* file;
  const char* function;
  Step step;
  int nth;
  const char* reason;
};

// A kernel, a tile size of it, and a small problem of several blocks.
struct Subject {
  std::string name;  // the kernel's in the source, then its tile in angle brackets
  // On memory as it is at first. `is_right`, unless null, is told whether all came out right.
  std::function<Report(const Options&, bool* is_right)> run;
  std::vector<Redundant> redundant;
};

// Fails if the kernel races or computes something wrong, if it does neither without a call that is
// not listed as redundant, and if it does either without one that is. Prints a table.
void check(const Subject& subject);

// By families of kernels.
const std::vector<Subject>& scan_subjects();
const std::vector<Subject>& packing_subjects();
const std::vector<Subject>& table_subjects();
const std::vector<Subject>& second_level_subjects();

}  // namespace blindfuse::races
