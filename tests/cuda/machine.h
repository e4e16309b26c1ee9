// Runs CUDA kernels on the processor, bit for bit as a GPU would, so that their arithmetic,
// indices, pipelines and barriers are tested where there is no GPU. The functions that kernels call
// are in emulator.h; their implementation is here.
//
// Blocks run one after another. Each thread of a block is a fiber (fiber.h), which runs until it
// waits for others: for the block, for the lanes of its warp, or for a phase of a barrier.
// Everything happens on the caller's thread, in the same order every time. Copies and products take
// place as late as can be.
//
// What a GPU would leave undefined or hang at is a KernelFault here, out of launch(). The other
// threads of the block then stay where they are forever, and nothing of theirs is destroyed:
// kernels own nothing that would mind.
//
// In files that are compiled with -fsanitize=thread and BLINDFUSE_WATCHED each access to memory is
// watched, and those that race are faults, too (shadow.h). What is found does not depend on which
// thread runs first.
//
// Not emulated: __shared__ variables, partial warps, masks of some lanes, more than one block of a
// cluster.
#pragma once

#include <compare>
#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <stdexcept>
#include <string>

// The parts of CUDA's language that kernels use, for the processor: types and built-in variables.
// Next to the stand-in for the runtime (fake_runtime.h) the types are CUDA's own.
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

// These belong to the running thread, and change with it.
inline uint3 threadIdx{};
inline uint3 blockIdx{};
inline dim3 blockDim;
inline dim3 gridDim;

namespace blindfuse::emulator {

enum class Fault {
  kUnordered,        // two threads of a block
  kAcrossBlocks,     // two blocks
  kCopyInFlight,     // somebody and a copy that was not waited for
  kProductInFlight,  // somebody and a product that was not waited for
  kUnpublished,      // a product that reads what no fence of proxies has published, or a barrier
  kRegisters,        // a product's registers, without a fence before or a wait after
  kForeignMemory,    // memory that the kernel was not given
  kHang,             // threads wait for others that do not come
  kMisuse            // an instruction with operands that it does not take
};
std::string name_of(Fault fault);

class KernelFault : public std::logic_error {
 public:
  KernelFault(Fault fault, const std::string& text)
      : std::logic_error(name_of(fault) + ": " + text), fault_(fault) {}
  Fault fault() const { return fault_; }

 private:
  Fault fault_;
};

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

// A place in the source, as the default argument of what is called there.
struct Site {
  const char* file = "";
  const char* function = "";
  unsigned line = 0;
};
#define BLINDFUSE_SITE \
  const blindfuse::emulator::Site& site = {__builtin_FILE(), __builtin_FUNCTION(), __builtin_LINE()}

// A place in the source that synchronizes.
struct Call {
  std::string file;  // without folders
  unsigned line = 0;
  std::string function;  // without arguments of templates
  Step step = Step::kBlockBarrier;
  auto operator<=>(const Call&) const = default;
};

struct Options {
  // Accesses to memory are looked at, and calls are counted, where the kernel's file is compiled
  // for it.
  bool watches = true;
  // A call that does nothing, as if the kernel did not have it. Only where accesses are watched.
  std::optional<Call> omitted = std::nullopt;
  // The grid's last block does not run, as if the kernel were wrong.
  bool omits_last_block = false;
};

struct Report {
  // Passes that shared memory takes beyond the one that is needed, for each 8 lanes' n-th access of
  // 16 bytes: asynchronous copies, and loads. 0 is perfect. Only where accesses are watched.
  uint64_t bank_conflicts = 0;
  std::map<Call, uint64_t> calls;  // all that was called, and how often
};

// Runs thread(context) as each thread. A block has at most 1024 threads, in whole warps. Where
// accesses are watched, kernels may touch Memory (device_memory.h), the block's shared memory, and
// what is the thread's own. Not to be called from two threads of the host at once.
Report run_grid(const Options& options, dim3 grid, dim3 block, size_t shared_bytes,
                void (*thread)(void*), void* context);

// What runs_wgmma_code() says in kernels from now on; at first it says true.
void set_wgmma_code(bool runs);

// A product of a warpgroup: a in registers, or, where that is null, where a descriptor says.
struct GroupStart {
  int32_t* sums;
  uint32_t columns;
  const uint32_t (*a)[4];
  uint64_t a_descriptor;
  uint64_t descriptor;
};

enum class Kind : uint8_t { kRead, kWrite, kAtomic };

// The functions of emulator.h and of -fsanitize=thread end here.
namespace runtime {

// Nothing outside of a watched kernel.
void touch(Kind kind, const void* place, size_t bytes);
uint8_t* shared_memory();
uint32_t shared_address(const void* shared);
void require_place(const void* place, const char* what);
void count_load(const void* shared);
void block_barrier(const Site& site);
void warp_barrier(uint32_t mask, const Site& site);
uint32_t shuffle(uint32_t mask, uint32_t value, uint32_t source_lane, const Site& site);
uint32_t reduce_add(uint32_t mask, uint32_t value, const Site& site);
uint32_t atomic_add(uint32_t* sum, uint32_t value);
unsigned long long atomic_add(unsigned long long* sum, unsigned long long value);
uint32_t atomic_xor(uint32_t* word, uint32_t value);
uint32_t permute_bytes(uint32_t x, uint32_t y, uint32_t selector);
void copy_16(void* shared, const void* global);
void commit_copies(const Site& site);
void wait_copies(uint32_t pending, const Site& site);
void publish_shared(const Site& site);
// `count` products of the same a onto sums[0], sums[1], ...
void multiply(int32_t (*sums)[4], const uint32_t (&a)[4], const uint32_t (*b)[2], uint32_t count,
              const Site& site);
bool runs_wgmma_code();
// Registers that products read, or add to.
void pin(const void* registers, size_t bytes, bool are_sums);
void wgmma_fence(const Site& site);
void wgmma_start(const GroupStart& start, const Site& site);
void wgmma_commit(const Site& site);
void wgmma_wait(uint32_t pending, const Site& site);
void init_barrier(const uint64_t* barrier, uint32_t arrivals);
void publish_barriers(const Site& site);
void arrive(const uint64_t* barrier, const Site& site);
void arrive_and_expect(const uint64_t* barrier, uint32_t bytes, const Site& site);
void wait_for_phase(const uint64_t* barrier, uint32_t parity, const Site& site);
void copy_box(void* to, const void* map, uint32_t row, uint32_t column, const uint64_t* barrier);
// setmaxnreg. A thread has as many registers at first as there are for each thread of one block,
// 65,536 shared out in multiples of 8.
void set_registers(uint32_t count, bool takes, const Site& site);
uint64_t policy();
void require_policy(uint64_t policy, const char* what);

}  // namespace runtime

}  // namespace blindfuse::emulator
