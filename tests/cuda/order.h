// What orders the accesses of the threads of one block: barriers of the block and of warps, phases
// of barriers, and fences between proxies. Nothing else does.
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
// order: what was in an earlier phase comes before. Inside a phase a warp counts its barriers and
// its releases, and what a thread did at one number of its warp is told by the lane.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

namespace blindfuse::emulator {

// When something happened to a thread, or to an agent.
struct Moment {
  uint32_t actor = 0;
  uint32_t phase = 0;
  uint32_t clock = 0;  // of its warp
  uint64_t tick = 0;   // in the order in which it was seen
};

// Of each thread and agent, until which number what it did is known.
using Knowledge = std::vector<uint32_t>;
void merge(Knowledge& into, const Knowledge& from);

class Order {
 public:
  // Threads, in whole warps, have the numbers from 0 on, agents those that follow.
  Order(uint32_t thread_count, uint32_t agent_count);

  uint32_t phase() const { return phase_; }
  // Agents have warps of their own.
  uint32_t warp_of(uint32_t actor) const {
    return actor < thread_count_ ? actor / 32 : actor - thread_count_ + thread_count_ / 32;
  }
  Moment now(uint32_t actor);
  // Whether what happened at `moment` comes before what `actor` does now.
  bool is_before(const Moment& moment, uint32_t actor) const;

  void block_barrier() { ++phase_; }
  void warp_barrier(uint32_t warp);
  // What the thread knows, and has done until now.
  Knowledge release(uint32_t actor);
  void acquire(uint32_t actor, const Knowledge& known);
  // Until it is called again the first lane of the warp knows no more than all of them do.
  void switch_to_common(uint32_t warp);

  // fence.proxy.async: "Proxies": accesses through different proxies have an order only if a proxy
  // fence lies on the way from one to the other. It may be the writer's, after it wrote; the
  // reader's, before it reads; or anybody's between two barriers.
  void fence_proxies(uint32_t thread);
  // Whether one lies between a write at `moment`, which comes before, and what `thread` does now.
  // Of the fences of other lanes in the writer's or the reader's own phase none is counted.
  bool is_fenced(const Moment& moment, uint32_t thread) const;

 private:
  uint32_t thread_count_;
  uint32_t phase_ = 0;
  uint64_t tick_ = 0;
  std::vector<uint32_t> clocks_;  // of each warp
  std::vector<uint32_t> joined_;  // of each warp: until here all of its lanes know what each did
  std::vector<Knowledge> known_;  // of each actor, by way of phases
  std::optional<Knowledge> of_first_;
  std::vector<std::vector<Moment>> fences_;  // of each thread
  std::vector<uint32_t> fence_phases_;       // ascending
};

}  // namespace blindfuse::emulator
