// Runs a kernel on the processor and looks for races (shadow.h). The functions that the kernels
// call are in device_side.h; their implementation is here.
//
// Blocks run one after another. Each thread of a block is a fiber (tests/cuda/fiber.h), which runs
// until it waits for others; everything happens on the caller's thread. This finds as much as
// threads of the host would: the result does not depend on which thread runs first (shadow.h).
//
// A wrong kernel is reported, not thrown: where threads wait for others that do not come, that is
// the last report of the run. Threads that did not end stay where they are; nothing of theirs is
// destroyed, and kernels own nothing that would mind.
#pragma once

#include <compare>
#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <tuple>
#include <vector>

#include "tests/cuda/races/cuda_language.h"
#include "tests/cuda/races/shadow.h"

namespace blindfuse::races {

// What a kernel synchronizes with.
enum class Step {
  kBlockBarrier,  // __syncthreads()
  kWarpBarrier,   // __syncwarp()
  kCopyCommit,    // commit_copies()
  kCopyWait,      // wait_copies()
  kPublish,       // publish_shared()
  kWgmmaFence,
  kWgmmaCommit,
  kWgmmaWait,
  kPublishBarriers,  // publish_barriers()
  kArrive,           // arrive()
  kExpect,           // arrive_and_expect()
  kPhaseWait         // wait_for_phase()
};
std::string name_of(Step step);

// A place in the source that calls one of them.
struct Call {
  std::string file;  // without folders
  unsigned line = 0;
  std::string function;  // without arguments of templates
  Step step = Step::kBlockBarrier;
  auto operator<=>(const Call&) const = default;
};

struct Options {
  // A call that does nothing, as if the kernel did not have it.
  std::optional<Call> omitted;
  // Without, mma and wgmma leave their sums as they were, which takes less time: no kernel decides
  // by sums what it touches.
  bool computes_products = true;
  // Not more than that there is a race is asked.
  bool ends_with_first_race = false;
};

struct Report {
  std::vector<Race> races;         // the first ones; of each kind of fault no more than four
  std::map<Call, uint64_t> calls;  // all that was called, and how often
  std::string text() const;
  bool has(Fault fault) const;
};

// A place in the source, as the default argument of what is called there.
struct Site {
  const char* file = "";
  unsigned line = 0;
  const char* function = "";
};

// Runs thread(context) as each thread. A block has at most 1024 threads, in whole warps. Kernels
// touch `global`, the block's shared memory, and what is the thread's own.
Report run_grid(const Options& options, std::span<const Range> global, dim3 grid, dim3 block,
                size_t shared_bytes, void (*thread)(void*), void* context);

template <typename Kernel, typename... Args>
Report run(const Options& options, std::span<const Range> global, dim3 grid, dim3 block,
           size_t shared_bytes, Kernel kernel, Args... args) {
  // On the stack, as CUDA copies the arguments of a kernel: they are not part of its memory.
  std::tuple<Kernel, Args...> all(kernel, args...);
  return run_grid(
      options, global, grid, block, shared_bytes,
      [](void* context) {
        const auto& called = *static_cast<const std::tuple<Kernel, Args...>*>(context);
        std::apply([](const Kernel& k, const Args&... each) { k(each...); }, called);
      },
      &all);
}

// A product of a warpgroup: a in registers, or, where that is null, where a descriptor says.
struct WgmmaStart {
  int32_t* sums;
  uint32_t columns;
  const uint32_t (*a)[4];
  uint64_t a_descriptor;
  uint64_t descriptor;
};

// What the calls of device_side.h and of -fsanitize=thread come to. Outside of a run they do
// nothing.
namespace runtime {

void touch(Kind kind, const void* place, size_t bytes);
uint8_t* shared_memory();
uint32_t shared_address(const void* shared);
void block_barrier(const Site& site);
void warp_barrier(uint32_t mask, const Site& site);
uint32_t shuffle(uint32_t mask, uint32_t value, uint32_t source_lane, const Site& site);
uint32_t reduce_add(uint32_t mask, uint32_t value, const Site& site);
uint32_t atomic_add(uint32_t* sum, uint32_t value);
unsigned long long atomic_add(unsigned long long* sum, unsigned long long value);
void copy_16(void* shared, const void* global);
void commit_copies(const Site& site);
void wait_copies(uint32_t pending, const Site& site);
void publish_shared(const Site& site);
// `count` products of the same a onto sums[0], sums[1], ...
void multiply(int32_t (*sums)[4], const uint32_t (&a)[4], const uint32_t (*b)[2], uint32_t count,
              const Site& site);
// Registers that products read, or add to.
void pin(const void* registers, size_t bytes, bool are_sums);
void wgmma_fence(const Site& site);
void wgmma_start(const WgmmaStart& start, const Site& site);
void wgmma_commit(const Site& site);
void wgmma_wait(uint32_t pending, const Site& site);
void init_barrier(const uint64_t* barrier, uint32_t arrivals);
void publish_barriers(const Site& site);
// step: kArrive, or kExpect.
void arrive(const uint64_t* barrier, uint32_t bytes, Step step, const Site& site);
void wait_for_phase(const uint64_t* barrier, uint32_t parity, const Site& site);
void copy_box(void* to, const void* map, uint32_t row, uint32_t column, const uint64_t* barrier);

}  // namespace runtime

}  // namespace blindfuse::races
