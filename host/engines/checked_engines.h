// The engines with which a server or a build computes. A GPU's engines are used only after its
// kernels have computed the same results as the CPU.
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
  // The parts of a GPU's engine that are used in addition to the scan: "packing" if responses are
  // packed, and "tables" if packing tables are made.
  std::vector<std::string> parts;
  // Records the calls of a device that are under way, also those that engines make.
  std::shared_ptr<DeviceCalls> calls = std::make_shared<DeviceCalls>();
};

// Messages for people, one line each. Any thread.
struct EngineListener {
  std::function<void(const std::string&)> on_info = [](const std::string&) {};
  // A fact that the operator should know and did not ask for, such as a GPU that is not used.
  std::function<void(const std::string&)> on_warning = [](const std::string&) {};
  KernelRecord::Listener on_quarantine = {};
};

class CheckedEngines {
 public:
  using SelfTestRun = std::function<SelfTestResult(const SelfTestOptions&)>;

  // Runs the self-test of the devices in question, each in a process of its own, before this
  // process makes any call of CUDA, and notes the results in the makers' kernel record.
  //
  // "auto": the first device on which at least one kernel for the scan, and all of `parts`, pass;
  // the CPU if there is none. on_warning gets the reason for which a device that is there is not
  // used. "cuda": this device, with those of its kernels that pass. "cuda:KERNEL": this kernel,
  // which has to pass. "cpu" and "cpu:KERNEL": no self-test.
  //
  // Throws UsageError as make_engine_maker() does. Throws ResourceError if the named device cannot
  // be used now, or computes other results than the CPU. run: a replacement of the self-test, for
  // tests.
  explicit CheckedEngines(const EngineRequest& request, EngineListener listener = {},
                          SelfTestRun run = run_self_test);

  const EngineMaker& get() const { return *engines_; }
  bool computes_on_device() const { return device_ >= 0; }

  // Checks these parts, too, unless they have been checked: a later epoch may need parts that the
  // first one did not need. Throws ResourceError if a part does not pass, or cannot be checked now.
  // The device may lack memory, or another process may have the device for itself. Such a part is
  // checked again the next time.
  void check_parts(const std::vector<std::string>& parts);

 private:
  SelfTestResult test(int device, const std::vector<std::string>& parts) const;
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
