#include "host/engines/engine_factory.h"

#include <charconv>
#include <utility>

#include "host/cpu/cpu_engine.h"
#include "src/base/errors.h"
#ifdef BLINDFUSE_CUDA_ENGINE
#include "cuda/cuda_engine_maker.h"
#include "cuda/device/device_call.h"
#include "cuda/device/device_info.h"
#include "cuda/device/device_loss.h"
#include "cuda/device/driver_library.h"
#endif

namespace blindfuse {

std::optional<CudaName> parse_cuda_name(std::string_view name) {
  if (!name.starts_with("cuda")) return std::nullopt;
  name.remove_prefix(4);
  CudaName result;
  if (const size_t at = name.find('@'); at != std::string_view::npos) {
    const std::string_view number = name.substr(at + 1);
    const char* end = number.data() + number.size();
    const auto [last, error] = std::from_chars(number.data(), end, result.device);
    if (error != std::errc() || last != end || result.device < 0) return std::nullopt;
    name = name.substr(0, at);
  }
  if (name.empty()) return result;
  if (name.front() != ':' || name.size() == 1) return std::nullopt;
  result.kernel = name.substr(1);
  return result;
}

namespace {

std::string joined(const std::vector<std::string>& names) {
  std::string all;
  for (const std::string& name : names) all += (all.empty() ? "" : ", ") + name;
  return all;
}

#ifdef BLINDFUSE_CUDA_ENGINE
bool has_cuda_device() { return why_no_cuda_device(0).empty(); }
bool has_cuda_driver() { return is_cuda_driver_installed(); }
void forget_loss() { forget_lost_device(); }
std::shared_ptr<void> watch(std::chrono::milliseconds limit,
                            std::function<void(const std::string&)> on_hang) {
  return watch_device_calls(limit, std::move(on_hang));
}
#else
void forget_loss() {}
std::shared_ptr<void> watch(std::chrono::milliseconds,
                            const std::function<void(const std::string&)>&) {
  return nullptr;
}
bool has_cuda_driver() { return false; }
bool has_cuda_device() { return false; }
std::unique_ptr<EngineMaker> make_cuda_engine_maker(const std::vector<std::string>&, int) {
  throw UsageError(
      "the engine cuda is not in this program, which was built without nvcc; `blindfuse --version` "
      "lists the engines");
}
#endif

}  // namespace

std::vector<std::string> built_in_engines() {
  std::vector<std::string> names = {"cpu"};
  for (std::string_view kernel : cpu_kernel_names()) names.push_back("cpu:" + std::string(kernel));
#ifdef BLINDFUSE_CUDA_ENGINE
  names.push_back("cuda");
#endif
  return names;
}

std::vector<std::string> engine_names() {
  std::vector<std::string> names = built_in_engines();
  names.insert(names.begin(), "auto");
  if (!has_cuda_device()) {
    std::erase(names, "cuda");
    return names;
  }
#ifdef BLINDFUSE_CUDA_ENGINE
  for (const std::string_view kernel : cuda_kernel_names()) {
    names.push_back("cuda:" + std::string(kernel));
  }
#endif
  return names;
}

std::unique_ptr<EngineMaker> make_engine_maker(std::string_view name, unsigned thread_count) {
  if (name == "auto" && has_cuda_device()) return make_cuda_engine_maker({}, 0);
  if (name == "auto" || name == "cpu") return make_cpu_engine_maker("", thread_count);
  if (name.starts_with("cpu:") && name != "cpu:") {
    return make_cpu_engine_maker(name.substr(4), thread_count);
  }
  if (const auto cuda = parse_cuda_name(name)) {
    std::vector<std::string> kernels;
    if (!cuda->kernel.empty()) kernels.push_back(cuda->kernel);
    return make_cuda_engine_maker(kernels, cuda->device);
  }
  throw UsageError("there is no engine \"" + std::string(name) + "\"; this machine has " +
                   joined(engine_names()));
}

bool may_have_device() { return has_cuda_driver(); }

std::unique_ptr<EngineMaker> make_device_engine_maker(std::vector<std::string> kernels,
                                                      int device) {
  try {
    return make_cuda_engine_maker(std::move(kernels), device);
  } catch (const DeviceLostError&) {
    // The device was never used, and has nothing to release: another one may be used.
    forget_loss();
    throw;
  }
}

std::shared_ptr<void> watch_device(std::chrono::milliseconds limit,
                                   std::function<void(const std::string&)> on_hang) {
  return watch(limit, std::move(on_hang));
}

std::unique_ptr<Engine> make_engine(std::string_view name, uint64_t row_count,
                                    uint64_t column_count, unsigned thread_count) {
  return make_engine_maker(name, thread_count)->make_engine(row_count, column_count);
}

}  // namespace blindfuse
