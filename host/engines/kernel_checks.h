// Checks that every kernel of a GPU computes the same results as the CPU, with small problems and
// with extreme words.
#pragma once

#include <functional>
#include <string>
#include <vector>

namespace blindfuse {

struct KernelCheck {
  std::string kernel;  // as --engine takes it: "wgmma", "packing", "tables"
  std::string name;    // for people: "64 queries"
  // Loads the kernels' code, which may take as long as the driver's start. Throws the engines'
  // errors.
  std::function<void()> load;
  // "" if the results are right, otherwise the difference, for people. Throws the engines' errors.
  std::function<std::string()> run;
};

// "" if the device can be used, otherwise the reason against it.
std::string why_no_device(int device);
// True if there is no such device, or no driver, so that nothing can be repaired.
bool is_device_absent(int device);
// The number of devices; 0 if they cannot be counted.
int device_count();
// A description of the device, for people.
std::string device_description(int device);

// The checks for a device that can be used. Asks the device which kernels it can run. Scans: each
// kernel with each of its tiles, through the pipeline that answers queries, and once with the check
// of their products. Packing: responses packed under clients' keys, with one level and with two.
// Tables: packing tables and masks, as `build` makes them.
std::vector<KernelCheck> kernel_checks(int device);

}  // namespace blindfuse
