// The parts of CUDA's language that kernels use, for the processor: types and built-in variables.
// Next to the stand-in for the runtime (fake_runtime.h) the types are CUDA's own.
#pragma once

#ifdef BLINDFUSE_FAKE_CUDA_RUNTIME
#include <cuda.h>
#include <cuda_runtime_api.h>
#include <vector_functions.h>
#undef __global__
#undef __device__
#undef __host__
#undef __forceinline__
#undef __launch_bounds__
#undef __grid_constant__
#undef __shared__
// One block runs at a time.
#define __shared__ static
#endif

#define __global__
#define __device__
#define __host__
#define __forceinline__ inline
#define __launch_bounds__(...)
#define __grid_constant__

#ifndef BLINDFUSE_FAKE_CUDA_RUNTIME
struct dim3 {
  // Not explicit, as in CUDA: a number is a dim3.
  constexpr dim3(unsigned x_size = 1, unsigned y_size = 1, unsigned z_size = 1)
      : x(x_size), y(y_size), z(z_size) {}
  unsigned x, y, z;
};
struct uint3 {
  unsigned x, y, z;
};
// Kernels take memory of other types for these, which a compiler for GPUs does not mind.
struct [[gnu::may_alias]] alignas(8) uint2 {
  unsigned x, y;
};
struct [[gnu::may_alias]] alignas(16) uint4 {
  unsigned x, y, z, w;
};

constexpr uint2 make_uint2(unsigned x, unsigned y) { return {x, y}; }
constexpr uint4 make_uint4(unsigned x, unsigned y, unsigned z, unsigned w) { return {x, y, z, w}; }
#endif

// Of the running thread; they change with it.
inline uint3 threadIdx{};
inline uint3 blockIdx{};
inline dim3 blockDim;
inline dim3 gridDim;
