#include "cuda/device/device_info.h"

#include "cuda/device/check.h"
#include "src/base/errors.h"

namespace blindfuse {

std::string why_no_cuda_device(int device) {
  constexpr int kMajorMin = 8;  // Ampere
  int count = 0;
  const cudaError_t status = cudaGetDeviceCount(&count);
  (void)cudaGetLastError();
  if (status == cudaErrorInsufficientDriver) {
    return "no NVIDIA driver, or one that is older than this program's CUDA";
  }
  if (status == cudaErrorNoDevice || (status == cudaSuccess && count == 0)) return "no CUDA device";
  if (status != cudaSuccess) return cudaGetErrorString(status);
  if (device < 0 || device >= count) {
    return "there is no CUDA device " + std::to_string(device) + "; this machine has " +
           std::to_string(count) + ", counted from 0";
  }
  int major = 0;
  BLINDFUSE_CUDA(cudaDeviceGetAttribute(&major, cudaDevAttrComputeCapabilityMajor, device));
  if (major >= kMajorMin) return "";
  return "compute capability 8.0 or later is needed, and CUDA device " + std::to_string(device) +
         " is " + cuda_device_name(device);
}

bool is_cuda_device_absent(int device) {
  int count = 0;
  const cudaError_t status = cudaGetDeviceCount(&count);
  (void)cudaGetLastError();
  if (status == cudaSuccess) return device >= count;
  if (status == cudaErrorNoDevice) return true;
  // CUDA reports a missing driver and an old one with the same error.
  int driver_version = 0;
  return status == cudaErrorInsufficientDriver &&
         (cudaDriverGetVersion(&driver_version) != cudaSuccess || driver_version == 0);
}

int cuda_device_count() {
  int count = 0;
  const cudaError_t status = cudaGetDeviceCount(&count);
  (void)cudaGetLastError();
  return status == cudaSuccess ? count : 0;
}

std::string cuda_device_name(int device) {
  cudaDeviceProp properties{};
  BLINDFUSE_CUDA(cudaGetDeviceProperties(&properties, device));
  return std::string(properties.name) + ", compute capability " + std::to_string(properties.major) +
         "." + std::to_string(properties.minor) + ", " +
         std::to_string(properties.multiProcessorCount) + " multiprocessors, " +
         std::to_string(properties.totalGlobalMem / 1'000'000'000) + " GB";
}

int use_cuda_device(int device) {
  const std::string why_not = why_no_cuda_device(device);
  if (!why_not.empty()) throw UsageError("the engine cuda cannot run: " + why_not);
  BLINDFUSE_CUDA(cudaSetDevice(device));
  return device;
}

}  // namespace blindfuse
