#include "cuda/device/device_info.h"

#include <cstdio>

#include "cuda/device/check.h"
#include "cuda/device/device_loss.h"
#include "src/base/errors.h"

namespace blindfuse {

namespace {

// A driver serves every runtime of its own major version, and of those before.
// https://docs.nvidia.com/deploy/cuda-compatibility/minor-version-compatibility.html
constexpr int kVersionNeeded = CUDART_VERSION / 1000 * 1000;
static_assert(kVersionNeeded == 12'000 || kVersionNeeded == 13'000,
              "the oldest driver of this major version is known");
constexpr const char* kDriverNeeded = kVersionNeeded == 12'000 ? "525" : "580";

// The CUDA version that the driver supports, as CUDART_VERSION counts. 0 if there is no driver.
int cuda_driver_version() {
  int version = 0;
  if (cudaDriverGetVersion(&version) != cudaSuccess) (void)cudaGetLastError();
  return version;
}

// 13000 is "13.0".
std::string cuda_version_text(int version) {
  return std::to_string(version / 1000) + "." + std::to_string(version % 1000 / 10);
}

std::string on_driver() {
  const std::string needed = "this program needs one for CUDA " +
                             cuda_version_text(kVersionNeeded) + ", that is " + kDriverNeeded +
                             " or later";
  const int version = cuda_driver_version();
  if (version == 0) {
    return "there is no NVIDIA driver here, and " + needed +
           "; where nvidia-smi works, this is a container without the GPU: start it with "
           "--device nvidia.com/gpu=all (Podman) or --gpus all (Docker)";
  }
  return "the NVIDIA driver is for CUDA " + cuda_version_text(version) + ", and " + needed +
         ": update the driver (nvidia-smi shows its version)";
}

// The operator's cure for each state of a machine in which its devices cannot be used. "" for an
// error that is none of these: the device has failed. The meanings are those of cudaError_t in
// CUDA's driver_types.h.
std::string advice_on(cudaError_t status) {
  switch (status) {
    case cudaErrorInsufficientDriver:
    case cudaErrorCallRequiresNewerDriver:
      return on_driver();
    case cudaErrorNoDevice:
      return "no CUDA device: nvidia-smi -L lists those that the driver has, and "
             "CUDA_VISIBLE_DEVICES may hide them";
    case cudaErrorSystemNotReady:
      return "the devices are not ready: on a machine with NVSwitch the fabric manager has to run "
             "first (systemctl status nvidia-fabricmanager)";
    case cudaErrorSystemDriverMismatch:
      return "the driver's library and its kernel module have different versions, as after an "
             "update: restart the machine, or load the new nvidia modules";
    case cudaErrorCompatNotSupportedOnDevice:
      return "this device does not take CUDA's libraries for forward compatibility: leave "
             "cuda-compat out of LD_LIBRARY_PATH, or update the driver";
    case cudaErrorUnknown:
    case cudaErrorInitializationError:
    case cudaErrorOperatingSystem:
      return "the driver cannot be used: load its module (modprobe nvidia-uvm; nvidia-modprobe -c "
             "0 "
             "-u), and let this process open /dev/nvidia* (examples/gpu.conf for a service)";
    case cudaErrorNotPermitted:
      return "the driver does not permit it: look for /dev/nvidia* and the unit's DeviceAllow "
             "(examples/gpu.conf)";
    case cudaErrorDevicesUnavailable:
    case cudaErrorDeviceAlreadyInUse:
      return "another process has the device for itself, or it is in a mode that forbids its use "
             "(nvidia-smi -q -d COMPUTE): end that process, or nvidia-smi -c DEFAULT";
    case cudaErrorMpsConnectionFailed:
    case cudaErrorMpsRpcFailure:
    case cudaErrorMpsServerNotReady:
    case cudaErrorMpsMaxClientsReached:
    case cudaErrorMpsMaxConnectionsReached:
    case cudaErrorMpsClientTerminated:
      return "CUDA's multi-process service does not take this process: see that "
             "nvidia-cuda-mps-control runs for the same user, and that CUDA_MPS_PIPE_DIRECTORY is "
             "the same for both";
    case cudaErrorMemoryAllocation:
      return "the device has no memory left for another process: nvidia-smi lists those that have "
             "it";
    case cudaErrorStartupFailure:
    case cudaErrorDeviceUninitialized:
    case cudaErrorSoftwareValidityNotEstablished:
    case cudaErrorDeviceNotLicensed:
    case cudaErrorInvalidDevice:
    case cudaErrorStubLibrary:
      return std::string(cudaGetErrorString(status)) + "; nvidia-smi and the kernel's log say more";
    default:
      return "";
  }
}

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
  // cudaSetDevice makes the device's context, so an error of a device that is in use, or cannot be
  // used, shows here at the latest.
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
  // nvidia-smi writes the UUID in this form.
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
