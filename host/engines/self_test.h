// The kernels of a GPU against the CPU, in a process of their own: what crashes, hangs or computes
// something else there does no harm here.
#pragma once

#include <chrono>
#include <cstddef>
#include <functional>
#include <string>
#include <vector>

#include "host/system/device_calls.h"
#include "src/base/errors.h"
#include "src/engine/kernel_record.h"

namespace blindfuse {

struct SelfTestOptions {
  int device = 0;
  // Of the kernels, "packing" and "tables" among them, those that are not checked.
  std::vector<std::string> without = {};
  std::chrono::milliseconds patience = std::chrono::seconds(20);  // with one check
  // With the start of the driver, and with the code of the kernels of one check, which the driver
  // loads or compiles.
  std::chrono::milliseconds start_patience = kDeviceStartLimit;
};

struct SelfTestResult {
  enum class Outcome {
    kPassed,
    kWrong,    // it computes something else than the CPU
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
  std::string device;         // what it is, for people
  std::vector<Check> checks;  // after one that has not passed, none of the same kernel
  bool passed() const;
};

// The worker hung or ended before its first check, or between two of them.
class SelfTestError : public ResourceError {
 public:
  SelfTestError(const std::string& what, int device_count)
      : ResourceError(what), device_count_(device_count) {}
  // Of this machine, as far as the worker has said so; otherwise 0.
  int device_count() const { return device_count_; }

 private:
  int device_count_;
};

// "passed", "wrong", "failed", "crashed", "hung"
std::string_view name_of(SelfTestResult::Outcome outcome);

// Runs this program again, as a worker that makes the checks, and again for what is left when it
// has ended before its time. Makes no call of CUDA itself. Throws ResourceError when no process can
// be started, SelfTestError when the worker does not come to its first check.
SelfTestResult run_self_test(const SelfTestOptions& options);

// The same into the record of the device's kernels.
void note(const SelfTestResult& result, KernelRecord& record);

// What the worker does: makes the checks from number `first` on, except those of the kernels
// `without`, and says so on standard output, for run_self_test(). What others print there goes to
// standard error instead.
void run_self_test_worker(int device, size_t first, const std::vector<std::string>& without);

}  // namespace blindfuse
