// Kernels of the stand-in for the CUDA runtime: their shared memory, their code, and their
// launches.
#include <csignal>
#include <map>
#include <mutex>
#include <set>
#include <stdexcept>
#include <string>
#include <utility>

#include "tests/cuda/fake_device.h"
#include "tests/cuda/fake_faults.h"
#include "tests/cuda/fake_runtime.h"

namespace blindfuse::fake_cuda {
namespace {

class SharedMemory {
 public:
  void allow(const void* kernel, uint32_t bytes) {
    const std::lock_guard lock(mutex_);
    if (bytes > kMax) {
      throw std::logic_error("a kernel is allowed " + std::to_string(bytes) +
                             " bytes of shared memory: there are " + std::to_string(kMax));
    }
    allowed_[{current_device, kernel}] = bytes;
  }
  void require(const void* kernel, uint32_t bytes) {
    const std::lock_guard lock(mutex_);
    const auto at = allowed_.find({current_device, kernel});
    const uint32_t most = at == allowed_.end() ? kUnasked : at->second;
    if (bytes > most) {
      throw std::logic_error("a launch with " + std::to_string(bytes) +
                             " bytes of shared memory of a kernel that is allowed " +
                             std::to_string(most));
    }
  }

 private:
  static constexpr uint32_t kMax = 227 << 10;
  static constexpr uint32_t kUnasked = 48 << 10;

  std::mutex mutex_;
  std::map<std::pair<int, const void*>, uint32_t> allowed_;
};

SharedMemory& shared_memory() {
  static SharedMemory memory;
  return memory;
}

// Which kernels are on which device.
class LoadedKernels {
 public:
  static LoadedKernels& get() {
    static LoadedKernels kernels;
    return kernels;
  }

  void load(const void* kernel) {
    const std::lock_guard lock(mutex_);
    loaded_.insert({current_device, kernel});
  }
  void launch(const void* kernel, const char* name) {
    const std::lock_guard lock(mutex_);
    if (loaded_.insert({current_device, kernel}).second) late_.insert(name);
  }
  void forget() {
    const std::lock_guard lock(mutex_);
    loaded_.clear();
    late_.clear();
  }
  std::vector<std::string> late() {
    const std::lock_guard lock(mutex_);
    return {late_.begin(), late_.end()};
  }

 private:
  std::mutex mutex_;
  std::set<std::pair<int, const void*>> loaded_;
  std::set<std::string> late_;
};

void run_kernel(const Run& run, LaunchFault fault) {
  switch (fault) {
    case LaunchFault::kNone:
    case LaunchFault::kSpoil:
    case LaunchFault::kMiscount:
      return run(fault);
    case LaunchFault::kFault:
      return lose(cudaErrorIllegalAddress);
    case LaunchFault::kHang:
      return hang();
    case LaunchFault::kSkip:
      return;
    case LaunchFault::kDie:
      std::raise(SIGKILL);
  }
}

}  // namespace

cudaError_t launch(const char* name, const void* kernel, uint32_t shared_bytes, cudaStream_t stream,
                   Run run) {
  auto* const queue = reinterpret_cast<Queue*>(stream);
  shared_memory().require(kernel, shared_bytes);
  if (queue->device != current_device) {
    give_up("a stream or event of another than the current device is used");
  }
  if (const cudaError_t error = begin("cudaLaunchKernel")) return error;
  LoadedKernels::get().launch(kernel, name);
  Devices::get().put(
      queue, {[run = std::move(run), fault = next_launch(name)] { run_kernel(run, fault); }});
  return cudaSuccess;
}

cudaError_t allow_shared(const void* kernel, uint32_t bytes) {
  if (const cudaError_t error = begin("cudaFuncSetAttribute")) return error;
  shared_memory().allow(kernel, bytes);
  return cudaSuccess;
}

cudaError_t load_kernel(const void* kernel) {
  if (const cudaError_t error = begin("cudaFuncGetAttributes")) return error;
  LoadedKernels::get().load(kernel);
  return cudaSuccess;
}

void forget_kernels() { LoadedKernels::get().forget(); }
std::vector<std::string> kernels_loaded_late() { return LoadedKernels::get().late(); }

}  // namespace blindfuse::fake_cuda
