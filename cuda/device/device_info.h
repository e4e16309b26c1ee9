// What is known of a CUDA device before anything is put on it. Nothing of CUDA is needed to use it.
#pragma once

#include <string>

namespace blindfuse {

// "" when this device can be used; it is then the calling thread's current one. Otherwise why not,
// with what to do about it.
std::string why_no_cuda_device(int device);

// Whether the machine has no such device, or no NVIDIA driver at all: nothing is broken then.
bool is_cuda_device_absent(int device);

// 0 where they cannot be counted.
int cuda_device_count();

// "NVIDIA H200, compute capability 9.0, 132 multiprocessors, 141 GB"
std::string cuda_device_name(int device);

// The same with what tells it from others like it, and the versions of CUDA: "..., PCI
// 0000:1b:00.0, GPU-xxxxxxxx-xxxx-xxxx-xxxx-xxxxxxxxxxxx, driver for CUDA 13.0, runtime 13.0"
std::string cuda_device_description(int device);

// Makes it the calling thread's current one, and returns it. When it cannot be used, throws
// UsageError where another device or engine must be named: there is none of this number, or it is
// too old. ResourceError where the machine may have it later: no driver, one that is too old or not
// ready, a device that another process has for itself. DeviceLostError where it has failed in this
// process.
int use_cuda_device(int device);

}  // namespace blindfuse
