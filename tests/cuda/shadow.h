// A record of the accesses to the shared memory of a block and to the global memory of a grid,
// which tells accesses that race.
//
// Two accesses race if they overlap, at least one writes, not both are atomic, and no order
// (Order) lies between. Of a block all is told. Between blocks nothing has an order: there, what
// one writes no other may touch, unless all do it by atomic operations.
//
// Order does not depend on which thread the host runs first, so neither does what is found, as long
// as the places that a kernel touches do not depend on values that race. What is on its way
// (asynchronous copies, products) touches memory at any time from its beginning to the wait for it.
// It is checked at both, which finds all that has no order with one of them; all else that meets it
// comes after its beginning and before its end in every run, and is found by a mark on the memory.
//
// Memory is looked at in words of 4 bytes. Of a word, its bytes are told apart in a block; two
// blocks that write different bytes of one word are not.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "tests/cuda/device_memory.h"
#include "tests/cuda/machine.h"

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

class Shadow {
 public:
  // Does not return.
  using Fail = std::function<void(Fault, std::string)>;

  // thread_count: of a block; agents (Order), whose numbers follow, write through the
  // asynchronous proxy, so that no fence is needed between them and products.
  Shadow(Range shared, std::span<const Range> global, uint32_t thread_count, Fail fail);

  bool is_watched(const void* place) { return find(place) != nullptr; }
  // The next block's accesses: nothing is known of the shared memory, which is another one's.
  void begin_block(uint32_t block, Order& order);

  // Accesses of one actor, or of a whole warp, for which its first lane stands.
  void access(uint32_t actor, Kind kind, const void* place, size_t bytes, bool of_warp = false);

  // A copy that reads or writes: from its beginning, which is an access, too, to its end, which is
  // another. Nothing else may meanwhile touch what it writes, or write what it reads.
  void begin_copy(uint32_t actor, Kind kind, const void* place, size_t bytes);
  void end_copy(uint32_t actor, Kind kind, const void* place, size_t bytes);
  // The same for a product that a warp reads from shared memory through the asynchronous proxy.
  void begin_product(uint32_t thread, const void* place, size_t bytes);
  void end_product(uint32_t thread, const void* place, size_t bytes);

 private:
  // Accesses by lanes of a warp to a word at one number of its clock.
  struct Node {
    uint32_t warp;
    uint32_t clock;
    uint32_t lanes;
    uint32_t next;
    Kind kind;
    uint8_t bytes;  // a bit each
    bool of_warp;
  };
  struct Cell {
    uint32_t stamp;
    uint32_t head;  // of what was done since the last barrier of the block
    uint16_t written_by_copies;
    uint16_t read_by_copies;
    uint16_t read_by_products;
    uint32_t blocks[3][2];  // of each kind two that did it, counted from 1
  };
  struct FreeCells {
    void operator()(Cell* cells) const { std::free(cells); }
  };
  struct Area {
    const uint8_t* begin;
    size_t bytes;
    size_t number;  // 0: shared memory
    std::unique_ptr<Cell[], FreeCells> cells;
  };

  Area* find(const void* place);
  template <class F>
  void for_words(const void* place, size_t bytes, const F& f);
  void touch(Area& area, size_t word, uint8_t mask, uint32_t actor, Kind kind, bool of_warp);
  void require_no_other_block(Area& area, size_t word, uint32_t actor, Kind kind);
  bool is_ordered(const Node& node, uint32_t actor, bool of_warp) const;
  uint32_t lane_bit(uint32_t actor) const {
    return actor < thread_count_ ? uint32_t{1} << actor % 32 : 1;
  }
  void fail(Fault fault, const Area& area, size_t word, const std::string& what) const;

  Fail fail_;
  uint32_t thread_count_;
  std::vector<Area> areas_;      // the shared one first, then by address
  Area* found_ = nullptr;        // the last one
  std::vector<Node> nodes_;      // the first is none
  std::vector<Moment> written_;  // of each word of shared memory; by kNobody: not yet
  uint32_t block_ = 0;
  uint32_t stamp_ = 0;
  uint32_t stamped_phase_ = 0;
  Order* order_ = nullptr;
};

}  // namespace blindfuse::emulator
