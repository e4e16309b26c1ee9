// The engines with which a server or a build computes: GPU or CPU is decided here, at the start of
// the process. A GPU's engines have only those kernels that have computed the same as the CPU.
#pragma once

#include <chrono>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "host/engines/self_test.h"
#include "src/engine/engine_maker.h"

namespace blindfuse {

struct EngineRequest {
  std::string name = "auto";  // as make_engine_maker() takes it
  unsigned thread_count = 0;
  // The parts of a GPU's engine that are used in addition to the scan: "packing" if responses are
  // packed, and "tables" if packing tables are made.
  std::vector<std::string> parts;
  // The time that a call of the device may take, and what is then called with a text for people.
  std::chrono::milliseconds call_limit{30'000};
  std::function<void(const std::string& what)> on_hang = [](const std::string&) {};
};

// Messages for people, one line each.
struct EngineListener {
  std::function<void(const std::string&)> on_info = [](const std::string&) {};
  // A fact that the operator should know and did not ask for, such as a GPU that is not used.
  std::function<void(const std::string&)> on_warning = [](const std::string&) {};
};

class CheckedEngines {
 public:
  using SelfTestRun = std::function<SelfTestResult(const SelfTestOptions&)>;

  // Runs the self-test of the devices in question, each in a process of its own, before this
  // process makes any call of CUDA. Calls of the device are watched from then on.
  //
  // "auto": the first device on which at least one kernel for the scan, and all of `parts`, pass;
  // the CPU if there is none, or if an earlier process has left the file of a device's fault
  // (host/system/device_fault.h). on_warning gets the reason for which a device that is there is
  // not used. "cuda": this device, with those of its kernels that pass. "cuda:KERNEL": this kernel,
  // which has to pass. "cpu" and "cpu:KERNEL": no self-test.
  //
  // Throws UsageError as make_engine_maker() does. Throws ResourceError if the named device cannot
  // be used now, or computes other results than the CPU. run: a replacement of the self-test, for
  // tests.
  explicit CheckedEngines(const EngineRequest& request, EngineListener listener = {},
                          SelfTestRun run = run_self_test);

  const EngineMaker& get() const { return *engines_; }
  // The device's description, for people; empty for the CPU.
  const std::string& device() const { return device_; }
  // True if the CPU computes because of the file that an earlier process left.
  bool is_device_set_aside() const { return is_set_aside_; }

  // Checks those of these parts that have not been checked: a later epoch may need parts that the
  // first one did not need. Throws ResourceError if a part does not pass, or cannot be checked now:
  // the device may lack memory, or take no second process. The next call checks it again.
  void check_parts(const std::vector<std::string>& parts);

 private:
  SelfTestResult test(int device, const std::vector<std::string>& parts,
                      const std::vector<std::string>& kernels) const;
  std::unique_ptr<EngineMaker> choose();
  std::unique_ptr<EngineMaker> named(const std::string& kernel, int device);
  std::unique_ptr<EngineMaker> on_device(const std::string& kernel, int device,
                                         const SelfTestResult& result);

  const EngineRequest request_;
  const EngineListener listener_;
  const SelfTestRun run_;
  std::string device_;
  int device_number_ = 0;
  bool is_set_aside_ = false;
  std::vector<std::string> checked_parts_;
  std::shared_ptr<void> watch_;  // of the device's calls
  std::unique_ptr<EngineMaker> engines_;
};

}  // namespace blindfuse
