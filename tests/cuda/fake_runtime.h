// The functions of the stand-in for the CUDA runtime in addition to CUDA's own.
#pragma once

#include <cuda_runtime_api.h>

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "tests/cuda/fake_faults.h"

namespace blindfuse::fake_cuda {

// A kernel's run, as it is, without its last block (kSpoil), or with one word of its results
// altered (kMiscount).
using Run = std::function<void(LaunchFault)>;

// Puts a kernel's run into a stream. What it returns, and what happens to the run, is what
// set_faults() says (tests/cuda/fake_faults.h). Ends the process where the stream is not one of the
// current device.
//
// CUDA C++ Programming Guide, "Compute capabilities": a block has up to 48 KB of shared memory, and
// more, up to 227 KB with compute capability 9.0, only when the kernel is allowed it. A
// std::logic_error for a launch with more, or for more than there is.
cudaError_t launch(const char* name, const void* kernel, uint32_t shared_bytes, cudaStream_t stream,
                   Run run);
cudaError_t allow_shared(const void* kernel, uint32_t bytes);

// Does for a kernel what cudaFuncGetAttributes() does: its code is on the current device then.
cudaError_t load_kernel(const void* kernel);
// From here on no kernel is on any device.
void forget_kernels();
// Since then, the kernels whose code came to a device with their first launch, each once.
std::vector<std::string> kernels_loaded_late();

// For the runtime's functions: counts the call. What it has to return without doing anything.
cudaError_t begin(const char* call);

// The bytes that are allocated now: on all devices, and pinned.
uint64_t allocated_bytes();
// The most that was allocated on this device at any time since reset_peaks().
uint64_t peak_bytes(int device);
void reset_peaks();

// The devices of a new process, of which nothing is allocated: after one that has left all to a
// device that it lost.
void begin_anew();

// For tests that lose the device: what its owners have left on it does not stay. It is declared
// before all that uses the device.
struct Anew {
  Anew() = default;
  Anew(const Anew&) = delete;
  Anew& operator=(const Anew&) = delete;
  ~Anew() { begin_anew(); }
};

}  // namespace blindfuse::fake_cuda
