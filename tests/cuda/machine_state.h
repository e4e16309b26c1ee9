// A launch that is under way (machine.h): what its block, warps and threads have on their way.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <map>
#include <memory>
#include <new>
#include <optional>
#include <string>
#include <vector>

#include "tests/cuda/fiber.h"
#include "tests/cuda/machine.h"
#include "tests/cuda/shadow.h"

namespace blindfuse::emulator {

// Of a block, each with an agent (order.h) that stands for the copies of boxes that come to it.
inline constexpr uint32_t kBarriersMax = 64;
// Where shared memory begins in its window, as descriptors are told.
inline constexpr uint32_t kWindowPlace = 1024;
inline constexpr uint32_t kCopyBytes = 16;

// The products of the tensor cores, by the PTX ISA's figures of how matrices lie in registers and
// in shared memory. Lane 4 g + t of a warp's 32 has g < 8 and t < 4.

// mma.sync.m16n8k32 of signed bytes: "Matrix Fragments for mma.m16n8k32". Modulo 2^32.
struct WarpProduct {
  std::array<int32_t*, 32> sums;      // four each
  std::array<const uint32_t*, 32> a;  // four each
  std::array<const uint32_t*, 32> b;  // two each

  void compute() const;
};

// Of one row of wgmma's second operand of 8-bit numbers: two pieces of 16 bytes, which the swizzle
// may tear apart.
inline constexpr size_t kOperandBytes = 16;

// "Matrix Descriptor Format" of wgmma, for 128-byte swizzle, K-major: where the 2 `rows` pieces of
// a matrix of `rows` rows of 32 bytes lie in shared memory, row after row. The window begins with
// `window` bytes of others'. Nothing for other descriptors.
std::vector<uint32_t> described_rows(uint64_t descriptor, uint32_t rows, uint32_t window);

// Rows of wgmma's first operand.
inline constexpr uint32_t kGroupRows = 64;

// A warp's part of wgmma.m64nNk32.s8.s8 with a in registers, or in shared memory: "Register
// Fragments for wgmma.mma_async.m64nNk32". Modulo 2^32. The text does not say which warp reads
// which rows of a from shared memory: it is taken that each reads all.
struct GroupProduct {
  uint32_t columns = 0;             // N
  uint32_t warp = 0;                // of the four
  std::vector<uint32_t> matrix;     // described_rows() of a, if it is in shared memory
  std::vector<uint32_t> operand;    // described_rows()
  std::array<int32_t*, 32> sums{};  // columns / 2 each
  std::array<std::array<uint32_t, 4>, 32> a{};

  void compute(const uint8_t* shared) const;
  // f(place) of all that it reads from shared memory.
  template <class F>
  void for_places(const F& f) const {
    for (const uint32_t place : operand) f(place);
    for (const uint32_t place : matrix) f(place);
  }
};

// What threads wait for.
enum class Together {
  kNothing,
  kBlockBarrier,
  kWarpBarrier,
  kShuffle,
  kReduceAdd,
  kMultiply,
  kGroupStart,
  kGroupWait,
  kRegisterCount,
  kPhase,     // of a barrier, until it is complete
  kRegisters  // until others have given up enough of them
};

// Sixteen bytes on their way to shared memory; where a matrix ends, fewer, and zeros around them.
struct Copy {
  uint8_t* to;
  const uint8_t* from;
  uint64_t group = 0;
  uint32_t zeros = 0;  // before the bytes
  uint32_t bytes = kCopyBytes;
};

// The operands that lanes bring to what they do together.
struct Shuffle {
  uint32_t value;
  uint32_t source;
};
struct Multiply {
  int32_t (*sums)[4];
  const uint32_t (*a)[4];
  const uint32_t (*b)[2];
  uint32_t count;
};

// Registers that a product has to do with.
struct Registers {
  const uint8_t* begin;
  size_t bytes;
  bool are_sums;
  bool were_written;  // with no fence since
  uint32_t in_use;    // by products in flight
};

struct Thread {
  enum class State { kReady, kWaiting, kEnded };
  uint3 index{};
  Context context{};
  State state = State::kReady;
  const uint8_t* stack_top = nullptr;
  // Where it waits, and for what.
  Together what = Together::kNothing;
  Site site{};
  size_t barrier = 0;  // of kPhase

  std::vector<Copy> copies{};  // not waited for
  uint64_t groups_committed = 0;
  std::vector<Registers> registers{};
  uint64_t loads = 0, copies_issued = 0;
};

struct Warp {
  uint32_t waiting = 0;  // lanes, for the same
  uint32_t first = 0;    // one of them
  std::array<void*, 32> arguments{};
  std::vector<GroupProduct> products;               // not committed
  std::deque<std::vector<GroupProduct>> committed;  // groups, the earliest first
  uint64_t products_started = 0;
  uint32_t registers = 0;                  // of a thread
  std::vector<uint32_t> register_changes;  // what setmaxnreg made of them
};

// Four warps: what products they have started, in this order each of them.
struct Group {
  std::vector<std::array<uint64_t, 3>> products;  // columns and descriptors
};

// PTX ISA, "mbarrier": a phase is complete when no arrivals are pending and all bytes have come
// that were expected. Then the next one begins with all arrivals pending.
struct PhaseBarrier {
  const uint64_t* at;
  uint32_t arrivals;
  uint32_t pending;
  uint32_t initializer;
  bool is_published = false;
  uint64_t phase = 0;  // phases that are complete
  int64_t bytes = 0;   // expected and not there
  Knowledge gathered;  // of those that arrived in this phase
  Knowledge known;     // by a thread that waits for a phase that is complete
};

// A box of a matrix on its way.
struct Box {
  size_t barrier;
  std::vector<Copy> pieces;
};

// Accesses of 16 bytes by eight lanes at once, which have all banks between them.
class BankConflicts {
 public:
  // The n-th access of one of the eight lanes with this number, at this offset.
  void add(uint64_t lanes, uint64_t n, size_t offset);
  uint64_t count() const;

 private:
  std::map<std::pair<uint64_t, uint64_t>, std::vector<size_t>> together_;
};

class Machine {
 public:
  Machine(const Options& options, dim3 block, size_t shared_bytes, void (*thread)(void*),
          void* context);
  void run_block(uint32_t number);
  Report take_report();

  // The rest is called by fibers.

  // The body of a fiber, from its beginning to its end.
  void run_thread();
  // The launch ends with this.
  [[noreturn]] void fail(Fault fault, const std::string& text);
  // Notes the call, and says whether it counts.
  bool calls(Step step, const Site& site);
  // Returns when all lanes of the warp have come, and what they do together is done.
  void join_warp(Together what, void* argument, const Site& site);
  void join_block(const Site& site);

  void touch(Kind kind, const void* place, size_t bytes);
  // The offset in shared memory of this number of bytes, aligned to `alignment`.
  size_t shared_offset(const void* place, const char* what, size_t bytes, size_t alignment);
  void count_load(const void* shared);
  void copy(uint8_t* to, const uint8_t* from);
  void commit_copies() { ++mine().groups_committed; }
  void wait_copies(uint32_t pending);
  // Products of a warpgroup: group_products.cpp.
  void publish();
  void pin(const uint8_t* begin, size_t bytes, bool are_sums);
  void wgmma_fence();
  void wgmma_commit();
  void set_registers(uint32_t count, bool takes, const Site& site);
  // Barriers with phases, and boxes: boxes.cpp.
  void init_barrier(const uint64_t* at, uint32_t arrivals);
  void publish_barriers();
  void arrive(const uint64_t* at, uint32_t bytes, const char* what);
  void wait_for_phase(const uint64_t* at, uint32_t parity, const Site& site);
  void copy_box(uint8_t* to, const void* map, int32_t row, int32_t column, const uint64_t* at);

  uint8_t* shared() const { return shared_.get(); }

 private:
  static constexpr std::align_val_t kAlignment{1024};
  struct FreeShared {
    void operator()(uint8_t* memory) const { ::operator delete(memory, kAlignment); }
  };

  Thread& mine() { return threads_[running_]; }
  bool run_warp(size_t warp);
  // Until the host lets the running thread go on.
  void pause();
  void wait(Together what, const Site& site);
  void come(Together what, void* argument, const Site& site);
  void release(size_t warp);
  void act(Together what, uint32_t warp);
  void start_product(uint32_t warp);
  void end_products(uint32_t warp, uint32_t pending);
  void end_product(uint32_t warp, const GroupProduct& product);
  void change_registers(uint32_t warp);
  void require_nothing_left(uint32_t thread);
  std::string who_waits() const;
  bool is_program_memory(const void* place) const;
  bool is_on_stack(const void* place) const;

  PhaseBarrier& use_barrier(const uint64_t* at, const char* what, bool by_accelerator);
  uint32_t agent_of(size_t barrier) const {
    return static_cast<uint32_t>(threads_.size() + barrier);
  }
  void complete(size_t barrier);
  // Brings the box that was asked for first; whether there was one.
  bool land_next();
  void perform(const Copy& copy, uint32_t actor);
  void begin(const Copy& copy, uint32_t actor);

  const Options& options_;
  const size_t shared_bytes_;
  void (*const thread_)(void*);
  void* const context_;
  const std::unique_ptr<uint8_t, FreeShared> shared_;
  std::optional<Shadow> shadow_;  // where accesses are watched
  Report report_;
  std::string error_;
  Fault error_kind_ = Fault::kMisuse;
  // Of calls that were noted: many threads make the same.
  struct Known {
    const char* file;
    unsigned line;
    Step step;
    uint64_t* count;
    bool is_omitted;
  };
  std::vector<Known> known_;

  // The running block's.
  Context host_;
  std::vector<Thread> threads_;
  std::vector<Warp> warps_;
  std::vector<Group> groups_;
  std::optional<Order> order_;  // where accesses are watched
  std::vector<PhaseBarrier> barriers_;
  std::deque<Box> boxes_;
  BankConflicts load_conflicts_, copy_conflicts_;
  uint32_t running_ = 0;
  size_t at_barrier_ = 0;
  uint32_t free_registers_ = 0;
};

// The one that is under way, and whether the kernel's own code runs. What the machine does
// meanwhile may also be compiled with calls of the sanitizer: templates of the standard library,
// which the kernels' files share.
inline Machine* machine = nullptr;
inline bool is_in_kernel = false;

}  // namespace blindfuse::emulator
