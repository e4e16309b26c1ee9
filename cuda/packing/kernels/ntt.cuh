// The transforms of src/arithmetic/ring/ntt.h by a block of threads, in shared memory:
// bit for bit those of ring::portable_ntt.
//
// A thread has 8 of the 2048 values in registers and does three levels of butterflies with them
// (the last time two) before they are shared out again: four passes for eleven levels. Seen as 64
// rows of 32 words, the first two passes take whole rows, a warp one at a time; the last two take
// words of one column from 32 rows. Between the two kinds, row r has its columns exclusive-or-ed
// with r, so that no pass has two lanes at one bank. Nor has the order of the points: the values of
// a row are those at w^e for all e with one rest modulo 128, and so the numbers of their points
// have one rest modulo 32, another one in each of the 32 rows.
//
// The first level reduces the polynomial modulo X^1024 - i and modulo X^1024 + i, whose roots are
// the points of the first half and those of the second. After it, each half is transformed by
// itself.
//
// Napkin: 11,264 butterflies of some 10 instructions are 3520 instructions of a warp, 880 clocks of
// a multiprocessor's four schedulers; in addition there are 512 accesses of a warp to shared
// memory, one a clock. A block alone, with two warps for each scheduler, waits most of its time: at
// six barriers, and for factors, the first time from the second-level cache. Unmeasured.
#pragma once

#include <cstdint>

#include "cuda/device/intrinsics.cuh"
#include "cuda/packing/kernels/ntt_args.h"
#include "src/arithmetic/ring/ring_dimension.h"

namespace blindfuse {
// Every file that includes this has its own: the tests run the same kernels on the CPU.
namespace {

// The threads of a block that computes NTTs.
constexpr uint32_t kNttThreads = 256;
// Values of a thread; its coefficients are those at threadIdx.x + kNttThreads * i.
constexpr uint32_t kNttValues = kRingWords / kNttThreads;

constexpr uint32_t swizzled_word(uint32_t row, uint32_t column) {
  return row * 32 + (column ^ row % 32);
}

__device__ __forceinline__ ring::MontgomeryConstant load_twiddle(
    const ring::MontgomeryConstant* twiddle) {
  const uint2 words = __ldg(reinterpret_cast<const uint2*>(twiddle));
  return {words.x, words.y};
}

// The levels of an NTT that bring `kCount` values together. Twiddle factor n is for the first of
// them, 2 n and 2 n + 1 for the halves of the second, and so on.
template <uint32_t kCount>
__device__ __forceinline__ void forward_levels(const NttView& ring, uint32_t n, uint32_t* x) {
#pragma unroll
  for (uint32_t blocks = 1; blocks < kCount; blocks *= 2) {
    const uint32_t gap = kCount / 2 / blocks;
#pragma unroll
    for (uint32_t block = 0; block < blocks; ++block) {
      const ring::MontgomeryConstant twiddle = load_twiddle(ring.forward + n * blocks + block);
#pragma unroll
      for (uint32_t i = 0; i < gap; ++i) {
        uint32_t& low = x[2 * block * gap + i];
        uint32_t& high = x[2 * block * gap + i + gap];
        const uint32_t turned = twiddle.times(high, ring.field);
        high = ring.field.subtract(low, turned);
        low = ring.field.add(low, turned);
      }
    }
  }
}

// The same levels back.
template <uint32_t kCount>
__device__ __forceinline__ void inverse_levels(const NttView& ring, uint32_t n, uint32_t* x) {
#pragma unroll
  for (uint32_t gap = 1; gap < kCount; gap *= 2) {
    const uint32_t blocks = kCount / 2 / gap;
#pragma unroll
    for (uint32_t block = 0; block < blocks; ++block) {
      const ring::MontgomeryConstant twiddle = load_twiddle(ring.inverse + n * blocks + block);
#pragma unroll
      for (uint32_t i = 0; i < gap; ++i) {
        uint32_t& low = x[2 * block * gap + i];
        uint32_t& high = x[2 * block * gap + i + gap];
        const uint32_t difference = ring.field.subtract(low, high);
        low = ring.field.add(low, high);
        high = twiddle.times(difference, ring.field);
      }
    }
  }
}

// The values of a thread in each pass.
struct NttPlaces {
  uint32_t thread = threadIdx.x;
  uint32_t lane = threadIdx.x % 32;
  uint32_t warp = threadIdx.x / 32;
  // For the last two passes.
  uint32_t row = warp / 4 * 32 + lane;
  uint32_t part = warp % 4;

  // Gaps of 1024, 512, 256 words.
  __device__ __forceinline__ uint32_t first(uint32_t i) const { return thread + kNttThreads * i; }
  // 128, 64, 32.
  __device__ __forceinline__ uint32_t second(uint32_t i) const {
    return (warp * 8 + i) * 32 + lane;
  }
  __device__ __forceinline__ uint32_t second_swizzled(uint32_t i) const {
    return swizzled_word(warp * 8 + i, lane);
  }
  // 16, 8, 4.
  __device__ __forceinline__ uint32_t third(uint32_t i) const {
    return swizzled_word(row, part + 4 * i);
  }
  // 2, 1.
  __device__ __forceinline__ uint32_t fourth(uint32_t i) const {
    return swizzled_word(row, part * 8 + i);
  }
  // The points of the fourth's values.
  __device__ __forceinline__ void load_points(const NttView& ring,
                                              uint32_t (&points)[kNttValues]) const {
    const uint4 pairs = __ldg(reinterpret_cast<const uint4*>(ring.points + row * 32 + part * 8));
    const uint32_t words[4] = {pairs.x, pairs.y, pairs.z, pairs.w};
#pragma unroll
    for (uint32_t i = 0; i < kNttValues; ++i) points[i] = words[i / 2] >> (i % 2 * 16) & 0xffff;
  }
};

// What is transformed to the values at all points: one polynomial of 2048 coefficients, or two of
// 1024, one after the other, each to its values at the points of one half.
enum class NttOf { kWhole, kHalves };

// The forward NTT and the inverse NTT, in place: 2048 words in shared memory, in the order of Ntt.
// Called by all threads of a block of kNttThreads. Each begins with a barrier, after which it
// reads, and ends with one, after which all threads may read and write.
template <NttOf kOf = NttOf::kWhole>
__device__ __forceinline__ void ntt_forward(const NttView& ring, uint32_t* polynomial) {
  const NttPlaces at;
  uint32_t x[kNttValues];
  __syncthreads();
#pragma unroll
  for (uint32_t i = 0; i < kNttValues; ++i) x[i] = polynomial[at.first(i)];
  if constexpr (kOf == NttOf::kWhole) {
    forward_levels<kNttValues>(ring, 1, x);
  } else {
    forward_levels<kNttValues / 2>(ring, 2, x);
    forward_levels<kNttValues / 2>(ring, 3, x + kNttValues / 2);
  }
#pragma unroll
  for (uint32_t i = 0; i < kNttValues; ++i) polynomial[at.first(i)] = x[i];
  __syncthreads();
#pragma unroll
  for (uint32_t i = 0; i < kNttValues; ++i) x[i] = polynomial[at.second(i)];
  forward_levels<kNttValues>(ring, 8 + at.warp, x);
  __syncwarp();  // the warp's rows have been read
#pragma unroll
  for (uint32_t i = 0; i < kNttValues; ++i) polynomial[at.second_swizzled(i)] = x[i];
  __syncthreads();
#pragma unroll
  for (uint32_t i = 0; i < kNttValues; ++i) x[i] = polynomial[at.third(i)];
  forward_levels<kNttValues>(ring, 64 + at.row, x);
#pragma unroll
  for (uint32_t i = 0; i < kNttValues; ++i) polynomial[at.third(i)] = x[i];
  __syncthreads();
#pragma unroll
  for (uint32_t i = 0; i < kNttValues; ++i) x[i] = polynomial[at.fourth(i)];
  const uint32_t n = 512 + at.row * 8 + at.part * 2;
  forward_levels<4>(ring, n, x);
  forward_levels<4>(ring, n + 1, x + 4);
  uint32_t points[kNttValues];
  at.load_points(ring, points);
  __syncthreads();  // all has been read
#pragma unroll
  for (uint32_t i = 0; i < kNttValues; ++i) polynomial[points[i]] = x[i];
  __syncthreads();
}

__device__ __forceinline__ void ntt_inverse(const NttView& ring, uint32_t* polynomial) {
  const NttPlaces at;
  uint32_t x[kNttValues];
  uint32_t points[kNttValues];
  at.load_points(ring, points);
  __syncthreads();
#pragma unroll
  for (uint32_t i = 0; i < kNttValues; ++i) x[i] = polynomial[points[i]];
  const uint32_t n = 512 + at.row * 8 + at.part * 2;
  inverse_levels<4>(ring, n, x);
  inverse_levels<4>(ring, n + 1, x + 4);
  __syncthreads();  // all has been read
#pragma unroll
  for (uint32_t i = 0; i < kNttValues; ++i) polynomial[at.fourth(i)] = x[i];
  __syncthreads();
#pragma unroll
  for (uint32_t i = 0; i < kNttValues; ++i) x[i] = polynomial[at.third(i)];
  inverse_levels<kNttValues>(ring, 64 + at.row, x);
#pragma unroll
  for (uint32_t i = 0; i < kNttValues; ++i) polynomial[at.third(i)] = x[i];
  __syncthreads();
#pragma unroll
  for (uint32_t i = 0; i < kNttValues; ++i) x[i] = polynomial[at.second_swizzled(i)];
  inverse_levels<kNttValues>(ring, 8 + at.warp, x);
  __syncwarp();  // the warp's rows have been read
#pragma unroll
  for (uint32_t i = 0; i < kNttValues; ++i) polynomial[at.second(i)] = x[i];
  __syncthreads();
#pragma unroll
  for (uint32_t i = 0; i < kNttValues; ++i) x[i] = polynomial[at.first(i)];
  inverse_levels<kNttValues>(ring, 1, x);
#pragma unroll
  for (uint32_t i = 0; i < kNttValues; ++i) {
    polynomial[at.first(i)] = ring.scale.times(x[i], ring.field);
  }
  __syncthreads();
}

}  // namespace
}  // namespace blindfuse
