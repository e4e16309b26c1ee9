// A pack's table and mask from its traces: the two chains of switches down the powers of 5, one
// after another in each, and the last switch, which brings both together. Word for word what
// PackingTableBuilder (host/cpu/packing) makes.
//
// A block has a chain: its mask and the three polynomials of digits stay in shared memory, and a
// switch is a transform back, digits, three transforms, and products with the turned key masks. The
// table is written in its own order, 16 points (64 bytes) at a time.
//
// Napkin: a switch is 4 * 3520 instructions of a warp for transforms and some 6000 for digits and
// products, 5000 clocks of the four schedulers of one multiprocessor at best; with two warps for
// each and 24 barriers, perhaps twice that. 1023 of them are 10 million clocks, 6 ms at 1.7 GHz,
// for all chains at the same time: an H100 has more multiprocessors than 16 packs have chains.
// Their tables are 805 MB, so that bringing them to the host takes longer. Unmeasured.
#pragma once

#include <cstdint>

#include "cuda/packing/kernels/traces.cuh"
#include "src/arithmetic/packing_table.h"
#include "src/arithmetic/ring/gadget.h"

namespace blindfuse {
// Every file that includes this has its own: the tests run the same kernels on the CPU.
namespace {

constexpr auto kDigitCount = static_cast<uint32_t>(ring::kDigits);
constexpr uint32_t kSwitchSharedBytes = kDigitCount * kRowSharedBytes;

// Takes the mask that lies at the points in the first of kDigits polynomials of shared memory, one
// of whose values each thread wrote at threadIdx.x + kRingThreads * i, to the next one, which is in
// its place then, written by the same threads: `next` and what the digits make of the key's masks.
// The digits go to the pack's table.
__device__ __forceinline__ void apply_switch(const TableTask& task, uint32_t number,
                                             const uint32_t* next, uint32_t* table,
                                             uint32_t* polynomials) {
  const ring::PrimeField& field = task.ring.field;
  ring_inverse(task.ring, polynomials);
#pragma unroll
  for (uint32_t i = 0; i < kRingValues; ++i) {
    uint32_t* const place = polynomials + threadIdx.x + kRingThreads * i;
    const auto found = ring::digits(*place, field);
#pragma unroll
    for (uint32_t k = 0; k < kDigitCount; ++k) {
      place[k * kRingWords] = field.reduce_signed(found[k]);
    }
  }
#pragma unroll 1
  for (uint32_t k = 0; k < kDigitCount; ++k) ring_forward(task.ring, polynomials + k * kRingWords);
  const Switch now = Switch::number(number);
  const uint32_t* const key_masks =
      task.key_masks + static_cast<uint32_t>(now.key) * kDigitCount * kRingWords;
#pragma unroll
  for (uint32_t i = 0; i < kRingValues; ++i) {
    const uint32_t point = threadIdx.x + kRingThreads * i;
    const uint32_t from = turned_point(now.to, point);
    uint32_t* const to =
        table + table_place(point / kPointsTogether, number, 0) + point % kPointsTogether;
    uint32_t sum = next[point];
#pragma unroll
    for (uint32_t k = 0; k < kDigitCount; ++k) {
      const uint32_t value = polynomials[k * kRingWords + point];
      to[k * kPointsTogether] = value;
      sum = field.add(sum, field.multiply(value, __ldg(key_masks + k * kRingWords + from)));
    }
    polynomials[point] = sum;
  }
}

// The chains, both of every pack. Grid: (2, packs); kSwitchSharedBytes.
__global__ void __launch_bounds__(kRingThreads) switch_down(TableTask task) {
  constexpr auto kOrbit = static_cast<uint32_t>(ring::kOrbit);
  constexpr auto kChain = static_cast<uint32_t>(kChainSwitches);
  uint32_t* const polynomials = shared_polynomials();
  const uint32_t chain = blockIdx.x, pack = blockIdx.y;
  const uint32_t* trace =
      task.squares + (uint64_t{pack} * kRingWords + chain * kOrbit + kOrbit - 1) * kRingWords;
  uint32_t* const table = task.tables + pack * kTableWords;
#pragma unroll
  for (uint32_t i = 0; i < kRingValues; ++i) {
    const uint32_t point = threadIdx.x + kRingThreads * i;
    polynomials[point] = trace[point];
  }
  for (uint32_t step = 0; step < task.switch_count; ++step) {
    trace -= kRingWords;
    apply_switch(task, chain * kChain + step, trace, table, polynomials);
  }
  uint32_t* const end = task.ends + (2 * pack + chain) * kRingWords;
#pragma unroll
  for (uint32_t i = 0; i < kRingValues; ++i) {
    const uint32_t point = threadIdx.x + kRingThreads * i;
    end[point] = polynomials[point];
  }
}

// From -1 to 1, and the mask's coefficients. Grid: (packs); kSwitchSharedBytes.
__global__ void __launch_bounds__(kRingThreads) switch_last(TableTask task) {
  uint32_t* const polynomials = shared_polynomials();
  const uint32_t pack = blockIdx.x;
  const uint32_t* const ends = task.ends + 2 * pack * kRingWords;
#pragma unroll
  for (uint32_t i = 0; i < kRingValues; ++i) {
    const uint32_t point = threadIdx.x + kRingThreads * i;
    polynomials[point] = ends[kRingWords + point];
  }
  apply_switch(task, static_cast<uint32_t>(2 * kChainSwitches), ends,
               task.tables + pack * kTableWords, polynomials);
  ring_inverse(task.ring, polynomials);
#pragma unroll
  for (uint32_t i = 0; i < kRingValues; ++i) {
    const uint32_t place = threadIdx.x + kRingThreads * i;
    task.masks[pack * kRingWords + place] = polynomials[place];
  }
}

}  // namespace
}  // namespace blindfuse
