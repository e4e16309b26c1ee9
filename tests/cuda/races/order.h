// What orders the accesses of the threads of one block: barriers of the block and of warps, and
// fences between proxies. Nothing else does.
//
// PTX ISA, "Memory Consistency Model": an operation comes before another in causality order if both
// are one thread's and stand so in its program, or if a barrier lies between (bar.sync, "guarantees
// that all memory accesses requested by this thread prior to the barrier are performed"; the same
// of bar.warp.sync among the threads of its mask). shfl.sync and redux.sync give no such guarantee.
//
// A thread that arrives at a barrier with phases releases what it knows, and one that has waited
// for the phase acquires it (mbarrier.arrive and mbarrier.try_wait: "by default .release",
// ".acquire"). What the accelerator copies for a barrier is done by a thread of its own, an agent,
// which knows what the thread knew that asked for it, and releases to the barrier when all has
// come.
//
// Each barrier of the block takes all of its threads (a run in which one does not come there is
// wrong already), so that a number for each stretch between two of them, a phase, says all of its
// order: what was in an earlier phase comes before. Inside a phase only lanes of one warp have
// order, by a vector clock of 32 lanes each, as barriers of a warp may take some of its lanes.
#pragma once

#include <array>
#include <cstdint>
#include <vector>

namespace blindfuse::races {

// When something happened to a thread.
struct Moment {
  uint32_t thread = 0;
  uint32_t phase = 0;
  uint32_t clock = 0;  // the lane's own, within the phases
  uint64_t tick = 0;   // in the order in which the detector saw it
};

// Of each thread, how far what it did is known.
using Knowledge = std::vector<uint32_t>;
void merge(Knowledge& into, const Knowledge& from);

class Order {
 public:
  explicit Order(uint32_t thread_count);

  uint32_t phase() const { return phase_; }
  Moment now(uint32_t thread);
  // Whether what happened at `moment` comes before what `thread` does now.
  bool is_before(const Moment& moment, uint32_t thread) const;

  void block_barrier();
  // What the thread knows, and has done until now.
  Knowledge release(uint32_t thread);
  void acquire(uint32_t thread, const Knowledge& known);
  // Of the lanes in `mask`.
  void warp_barrier(uint32_t warp, uint32_t mask);

  // fence.proxy.async: "Proxies": accesses through different proxies have an order only if a proxy
  // fence lies on the way from one to the other. It may be the writer's, after it wrote; the
  // reader's, before it reads; or anybody's between two barriers.
  void fence_proxies(uint32_t thread);
  // Whether one lies between a write at `moment`, which comes before, and what `thread` does now.
  // Of the fences of other lanes in the writer's or the reader's own phase none is counted.
  bool is_fenced(const Moment& moment, uint32_t thread) const;

 private:
  using LaneClocks = std::array<uint32_t, 32>;

  uint32_t phase_ = 0;
  uint64_t tick_ = 0;
  std::vector<LaneClocks> clocks_;  // of each thread, what it knows of its warp's lanes
  std::vector<Knowledge> known_;    // of each thread, by way of phases; empty until there are some
  std::vector<std::vector<Moment>> fences_;
  std::vector<uint32_t> fence_phases_;  // ascending
};

}  // namespace blindfuse::races
