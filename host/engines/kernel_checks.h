// What every kernel of a GPU computes, compared with what the CPU does: small problems, and the
// extremes of their words.
#pragma once

#include <functional>
#include <string>
#include <vector>

namespace blindfuse {

struct KernelCheck {
  std::string kernel;  // as in KernelRecord: "wgmma", "packing", "tables"
  std::string name;    // for people: "64 queries"
  // Loads the kernels' code, which may take as long as the driver's start. Throws what engines
  // throw.
  std::function<void()> load;
  // "" when all is as it should be; otherwise what is not, for people. Throws what engines throw.
  std::function<std::string()> run;
};

// "" when the device can be used; otherwise why not.
std::string why_no_device(int device);
// Whether there is no such device, or no driver, so that nothing can be mended.
bool is_device_absent(int device);
// How many there are; 0 where they cannot be counted.
int device_count();
// What it is, for people.
std::string device_description(int device);

// For a device that can be used. Asks it what it can run. Scans: each kernel with each of its
// tiles, through the pipeline that answers queries, and once with the check of their products.
// Packing: responses packed under clients' keys. Tables: packing tables and masks, as `build` makes
// them.
std::vector<KernelCheck> kernel_checks(int device);

}  // namespace blindfuse
