#include "cuda/device/device_states.h"

namespace blindfuse {
namespace {

// A driver serves every runtime of its own major version, and of those before.
// https://docs.nvidia.com/deploy/cuda-compatibility/minor-version-compatibility.html
constexpr int kVersionNeeded = CUDART_VERSION / 1000 * 1000;
static_assert(kVersionNeeded == 12'000 || kVersionNeeded == 13'000,
              "the oldest driver of this major version is known");
constexpr const char* kDriverNeeded = kVersionNeeded == 12'000 ? "525" : "580";

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

}  // namespace

int cuda_driver_version() {
  int version = 0;
  if (cudaDriverGetVersion(&version) != cudaSuccess) (void)cudaGetLastError();
  return version;
}

std::string cuda_version_text(int version) {
  return std::to_string(version / 1000) + "." + std::to_string(version % 1000 / 10);
}

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

}  // namespace blindfuse
