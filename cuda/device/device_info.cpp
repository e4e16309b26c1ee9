#include "cuda/device/device_info.h"

#include <cstdio>

#include "cuda/device/check.h"
#include "cuda/device/device_loss.h"
#include "cuda/device/device_states.h"
#include "src/base/errors.h"

namespace blindfuse {
namespace {

constexpr int kMajorMin = 8;  // Ampere

struct WhyNot {
  enum class Kind { kNone, kUsage, kState, kLost };
  Kind kind = Kind::kNone;
  std::string text;
};

WhyNot why_not(cudaError_t status) {
  (void)cudaGetLastError();
  const std::string advice = advice_on(status);
  return {advice.empty() ? WhyNot::Kind::kLost : WhyNot::Kind::kState,
          std::string(cudaGetErrorName(status)) + ", " +
              (advice.empty() ? cudaGetErrorString(status) : advice)};
}

WhyNot why_not_device(int device) {
  int count = 0;
  if (const cudaError_t status = cudaGetDeviceCount(&count)) return why_not(status);
  if (count == 0) return why_not(cudaErrorNoDevice);
  if (device < 0 || device >= count) {
    return {WhyNot::Kind::kUsage, "there is no CUDA device " + std::to_string(device) +
                                      "; this machine has " + std::to_string(count) +
                                      ", counted from 0"};
  }
  int major = 0;
  if (const cudaError_t status =
          cudaDeviceGetAttribute(&major, cudaDevAttrComputeCapabilityMajor, device)) {
    return why_not(status);
  }
  if (major < kMajorMin) {
    return {WhyNot::Kind::kUsage, "compute capability 8.0 or later is needed, and CUDA device " +
                                      std::to_string(device) + " is " + cuda_device_name(device)};
  }
  // Which makes its context: what has to run before it, and what has it, shows here at last.
  if (const cudaError_t status = cudaSetDevice(device)) return why_not(status);
  return {};
}

}  // namespace

std::string why_no_cuda_device(int device) { return why_not_device(device).text; }

bool is_cuda_device_absent(int device) {
  int count = 0;
  const cudaError_t status = cudaGetDeviceCount(&count);
  (void)cudaGetLastError();
  if (status == cudaSuccess) return device >= count;
  if (status == cudaErrorNoDevice) return true;
  // CUDA reports a missing driver and an old one with the same error.
  return status == cudaErrorInsufficientDriver && cuda_driver_version() == 0;
}

int cuda_device_count() {
  int count = 0;
  const cudaError_t status = cudaGetDeviceCount(&count);
  (void)cudaGetLastError();
  return status == cudaSuccess ? count : 0;
}

uint32_t cuda_multiprocessor_count(int device) {
  int count = 0;
  BLINDFUSE_CUDA(cudaDeviceGetAttribute(&count, cudaDevAttrMultiProcessorCount, device));
  return static_cast<uint32_t>(count);
}

std::string cuda_device_name(int device) {
  cudaDeviceProp properties{};
  BLINDFUSE_CUDA(cudaGetDeviceProperties(&properties, device));
  return std::string(properties.name) + ", compute capability " + std::to_string(properties.major) +
         "." + std::to_string(properties.minor) + ", " +
         std::to_string(properties.multiProcessorCount) + " multiprocessors, " +
         std::to_string(properties.totalGlobalMem / 1'000'000'000) + " GB";
}

std::string cuda_device_description(int device) {
  char bus_id[32] = "";
  BLINDFUSE_CUDA(cudaDeviceGetPCIBusId(bus_id, sizeof bus_id, device));
  cudaDeviceProp properties{};
  BLINDFUSE_CUDA(cudaGetDeviceProperties(&properties, device));
  // As nvidia-smi writes it.
  std::string uuid = "GPU-";
  for (size_t i = 0; i < sizeof properties.uuid.bytes; ++i) {
    if (i == 4 || i == 6 || i == 8 || i == 10) uuid += '-';
    char digits[3];
    std::snprintf(digits, sizeof digits, "%02x",
                  static_cast<unsigned>(static_cast<unsigned char>(properties.uuid.bytes[i])));
    uuid += digits;
  }
  return cuda_device_name(device) + ", PCI " + bus_id + ", " + uuid + ", driver for CUDA " +
         cuda_version_text(cuda_driver_version()) + ", runtime " +
         cuda_version_text(CUDART_VERSION);
}

int use_cuda_device(int device) {
  const DeviceCall call("cudaSetDevice", kDriverStartAllowance);
  const WhyNot why = why_not_device(device);
  const std::string message = "the engine cuda cannot run: " + why.text;
  switch (why.kind) {
    case WhyNot::Kind::kNone:
      break;
    case WhyNot::Kind::kUsage:
      throw UsageError(message);
    case WhyNot::Kind::kState:
      throw ResourceError(message);
    case WhyNot::Kind::kLost:
      lose_device(message);
  }
  return device;
}

}  // namespace blindfuse
