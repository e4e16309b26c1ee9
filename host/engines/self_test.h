// Compares the kernels of a GPU with the CPU, in a process of their own. A kernel that crashes,
// hangs or computes wrong results there does not harm this process.
#pragma once

#include <chrono>
#include <cstddef>
#include <functional>
#include <string>
#include <vector>

#include "src/base/errors.h"

namespace blindfuse {

// The time that a driver may take to start, and to load or compile the code of kernels.
inline constexpr std::chrono::seconds kDeviceStartLimit{120};

struct SelfTestOptions {
  int device = 0;
  // The kernels, including "packing" and "tables", that are not checked.
  std::vector<std::string> without = {};
  std::chrono::milliseconds patience = std::chrono::seconds(20);  // with one check
  // The time for the start of the driver, and for the code of the kernels of one check, which the
  // driver loads or compiles.
  std::chrono::milliseconds start_patience = kDeviceStartLimit;
};

struct SelfTestResult {
  enum class Outcome {
    kPassed,
    kWrong,    // it gives different results from the CPU
    kFailed,   // an error
    kCrashed,  // it ended the process
    kHung,     // it did not end in time
  };
  struct Check {
    std::string kernel;
    std::string name;
    Outcome outcome = Outcome::kPassed;
    std::string why;  // for people; empty when it has passed
  };

  std::string why_no_device;  // empty when the device can be used
  bool is_absent = false;     // the machine lacks this device or the driver; nothing is broken
  int device_count = 0;       // of this machine, as far as it is known
  std::string device;         // its description, for people
  std::vector<Check> checks;  // after one that has not passed, none of the same kernel
  bool passed() const;
};

// The worker hung or ended before its first check, or between two checks.
class SelfTestError : public ResourceError {
 public:
  SelfTestError(const std::string& what, int device_count)
      : ResourceError(what), device_count_(device_count) {}
  // The number of this machine's devices, if the worker has reported it; otherwise 0.
  int device_count() const { return device_count_; }

 private:
  int device_count_;
};

// "passed", "wrong", "failed", "crashed", "hung"
std::string_view name_of(SelfTestResult::Outcome outcome);

// Runs this program again, as a worker that makes the checks. If the worker ends before its time,
// runs another one for the remaining checks. Makes no call of CUDA itself. Throws ResourceError if
// no process can be started, and SelfTestError if the worker does not reach its first check.
SelfTestResult run_self_test(const SelfTestOptions& options);

// The worker's part: makes the checks from number `first` on, except those of the kernels
// `without`, and reports on standard output, for run_self_test(). Other output to standard output
// goes to standard error instead.
void run_self_test_worker(int device, size_t first, const std::vector<std::string>& without);

}  // namespace blindfuse
