// What is known of a CUDA device before anything is put on it. Nothing of CUDA is needed to use it.
#pragma once

#include <string>

namespace blindfuse {

// "" when this device can be used; otherwise why not.
std::string why_no_cuda_device(int device);

// Whether the machine has no such device, or no NVIDIA driver at all: nothing is broken then.
bool is_cuda_device_absent(int device);

// 0 where they cannot be counted.
int cuda_device_count();

// "NVIDIA H200, compute capability 9.0, 132 multiprocessors, 141 GB"
std::string cuda_device_name(int device);

// Makes it the calling thread's current one, and returns it. Throws UsageError when it cannot be
// used.
int use_cuda_device(int device);

}  // namespace blindfuse
