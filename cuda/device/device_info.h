// Facts about a CUDA device before anything is put on it. This header is plain C++: its users need
// nothing of CUDA.
#pragma once

#include <cstdint>
#include <string>

namespace blindfuse {

// "" if this device can be used; it is then the current device of the calling thread. Otherwise the
// reason, and the cure.
std::string why_no_cuda_device(int device);

// True if the machine has no such device, or no NVIDIA driver at all. Nothing is broken then.
bool is_cuda_device_absent(int device);

// The number of devices; 0 if they cannot be counted.
int cuda_device_count();

// The number of multiprocessors of a device that can be used. Throws as check_cuda() does.
uint32_t cuda_multiprocessor_count(int device);

// "NVIDIA H200, compute capability 9.0, 132 multiprocessors, 141 GB"
std::string cuda_device_name(int device);

// Adds the identity of this device among others like it, and the versions of CUDA: "..., PCI
// 0000:1b:00.0, GPU-xxxxxxxx-xxxx-xxxx-xxxx-xxxxxxxxxxxx, driver for CUDA 13.0, runtime 13.0"
std::string cuda_device_description(int device);

// Makes it the current device of the calling thread, and returns it. Throws UsageError if another
// device or engine must be named: there is no device of this number, or it is too old. Throws
// ResourceError if the machine may have it later: there is no driver, the driver is too old or not
// ready, or another process has the device for itself. Throws DeviceLostError if the device has
// failed in this process.
int use_cuda_device(int device);

}  // namespace blindfuse
