// The engines that a server or a build computes with: those of a GPU only after its kernels have
// computed what the CPU does.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "host/engines/self_test.h"
#include "host/system/device_calls.h"
#include "src/engine/engine_maker.h"
#include "src/engine/kernel_record.h"

namespace blindfuse {

struct EngineRequest {
  std::string name = "auto";  // as make_engine_maker() takes it
  unsigned thread_count = 0;
  // What of a GPU is used in addition to the scan: "packing", where responses are packed, and
  // "tables", where packing tables are made.
  std::vector<std::string> parts;
  // Has the calls of a device that are under way; those that engines make, too.
  std::shared_ptr<DeviceCalls> calls = std::make_shared<DeviceCalls>();
};

// For people, a line each. Any thread.
struct EngineListener {
  std::function<void(const std::string&)> on_info = [](const std::string&) {};
  // What the operator should know and did not ask for, such as a GPU that is not used.
  std::function<void(const std::string&)> on_warning = [](const std::string&) {};
  KernelRecord::Listener on_quarantine = {};
};

class CheckedEngines {
 public:
  using SelfTestRun = std::function<SelfTestResult(const SelfTestOptions&)>;

  // Runs the self-test of the devices in question, each in a process of its own, before this process
  // makes any call of CUDA, and notes its results in the makers' kernel record.
  //
  // "auto": the first device of which at least one kernel for the scan, and all of `parts`, pass;
  // the CPU where there is none. on_warning is told why a device that is there is not used. "cuda":
  // this device, with those of its kernels that pass. "cuda:KERNEL": this kernel, which has to pass.
  // "cpu" and "cpu:KERNEL": no self-test.
  //
  // Throws UsageError as make_engine_maker() does; ResourceError when the device that is named
  // cannot be used now, or computes something else than the CPU. run: another self-test, for tests.
  explicit CheckedEngines(const EngineRequest& request, EngineListener listener = {},
                          SelfTestRun run = run_self_test);

  const EngineMaker& get() const { return *engines_; }
  bool computes_on_device() const { return device_ >= 0; }

  // Checks these parts, too, unless they have been checked: for a later epoch that needs what the
  // first one did not. Throws ResourceError when one does not pass, or cannot be checked now, as for
  // lack of memory on the device, or in a process next to this one that has the device for itself;
  // that one is checked again the next time.
  void check_parts(const std::vector<std::string>& parts);

 private:
  SelfTestResult test(int device, const std::vector<std::string>& parts,
                      std::string_view kernel) const;
  std::unique_ptr<EngineMaker> choose(const EngineRequest& request);
  std::unique_ptr<EngineMaker> named(const EngineRequest& request, const std::string& kernel,
                                     int device);
  void refuse(const EngineRequest& request) const;
  std::unique_ptr<EngineMaker> on_device(const std::string& kernel, int device,
                                         const SelfTestResult& result);
  void check_now(const std::vector<std::string>& parts, KernelRecord& record) const;

  const EngineListener listener_;
  const SelfTestRun run_;
  const std::shared_ptr<DeviceCalls> calls_;
  int device_ = -1;  // the CPU
  std::unique_ptr<EngineMaker> engines_;
};

}  // namespace blindfuse
