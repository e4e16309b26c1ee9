#include "tests/cuda/emulator.h"

#include <algorithm>
#include <array>
#include <cstdlib>
#include <cstring>
#include <deque>
#include <exception>
#include <memory>
#include <new>
#include <span>
#include <stdexcept>
#include <string>
#include <vector>

#include "tests/cuda/fiber.h"
#include "tests/cuda/tensor_maps.h"

namespace blindfuse::emulator {
namespace {

constexpr unsigned kLanes = 32;
constexpr unsigned kMaxThreads = 1024;
constexpr uint32_t kCopyBytes = 16;
// The bits of a policy have a meaning on a GPU only: any value that nothing else has.
constexpr uint64_t kEvictFirst = 0x14f0'0000'0000'0000;
// CUDA C++ Programming Guide, "Compute capabilities": the most blocks in each dimension.
constexpr dim3 kGridMax(0x7fffffff, 0xffff, 0xffff);

// An operation that threads wait for together: the last one to arrive does it for all of them, from
// and to where their operands lie. No lane is woken before it is done, and a lane's operands are
// its own, so that a lane that runs ahead to the next collective disturbs no other.
using Operands = std::array<void*, kLanes>;
struct Collective {
  const char* name;
  void (*perform)(const Operands& operands);
};

struct Copy {
  uint8_t* shared;
  const void* global;
  uint64_t group;
  size_t chunk;

  void perform() const { std::memcpy(shared, global, kCopyBytes); }
};

// Sixteen bytes of shared memory, which a copy brings whole. PTX ISA, "Async proxy" and "cp.async":
// what a copy writes is seen by the thread that issued it, after its wait; by other threads after a
// barrier that follows this; and by wgmma, which is of another proxy, if there was a
// fence.proxy.async between the two.
constexpr unsigned kNobody = ~0u;
struct Chunk {
  enum class State { kPlain, kOnItsWay, kArrived, kPublished, kInBox };
  State state = State::kPlain;
  unsigned writer = kNobody;  // the thread whose copy it is
  uint64_t arrived_at = 0;    // barriers of the block until then
  uint64_t published_at = 0;
  unsigned products = 0;      // that read it and have not been waited for by all
  unsigned reader = kNobody;  // a thread that has read it since the barrier `read_at`
  bool has_readers = false;   // several
  uint64_t read_at = 0;
  size_t barrier = 0;  // that its box came to, in this phase
  uint64_t phase = 0;
};

// PTX ISA, "mbarrier": a phase is complete when no arrivals are pending and the transaction count,
// here what was expected less what has come, is 0. Then the next one begins with all arrivals
// pending.
struct PhaseBarrier {
  size_t offset;  // in shared memory
  uint32_t arrivals;
  uint32_t pending;
  unsigned initializer;  // the thread that made it
  uint64_t phase = 0;    // phases that are complete
  uint64_t bytes = 0;    // on their way in this one
  bool is_published = false;
  uint64_t published_at = 0;  // barriers of the block until then
};
constexpr uint32_t kBarrierCountMax = (1 << 20) - 1;  // of arrivals, and of bytes
constexpr size_t kNoBarrier = ~size_t{0};

// A box of a matrix on its way into shared memory.
struct BoxCopy {
  size_t offset;
  TiledMap map;
  int64_t row;
  int64_t column;
  size_t barrier;

  // PTX ISA, "Swizzling modes": chunks of 16 bytes in rows of 128, by bits 7 .. 9 of the address.
  size_t place(uint32_t column_of_box, uint32_t byte) const {
    const size_t linear = offset + size_t{column_of_box} * map.shape.box[0] + byte;
    return map.shape.swizzle == BoxSwizzle::kNone ? linear : linear ^ (linear >> 7 & 7) << 4;
  }
  template <typename Visit>
  void for_chunks(const Visit& visit) const {
    for (uint32_t c = 0; c < map.shape.box[1]; ++c) {
      for (uint32_t byte = 0; byte < map.shape.box[0]; byte += kCopyBytes) visit(c, byte);
    }
  }
  // "Out of bounds access": zeros.
  void perform(uint8_t* shared) const {
    for_chunks([&](uint32_t c, uint32_t byte) {
      uint8_t* const to = shared + place(c, byte);
      for (uint32_t i = 0; i < kCopyBytes; ++i) {
        const int64_t at = row + byte + i, of = column + c;
        const bool is_inside = at >= 0 && of >= 0 && uint64_t(at) < map.shape.sizes[0] &&
                               uint64_t(of) < map.shape.sizes[1];
        to[i] = is_inside ? map.address[uint64_t(of) * map.shape.pitch + uint64_t(at)] : 0;
      }
    });
  }
};

// The offsets in shared memory that as many lanes touch together as there are banks for, each 16
// bytes.
struct Phase {
  static constexpr unsigned kLanesMax = 128 / kCopyBytes;
  unsigned lanes = 0;
  std::array<size_t, kLanesMax> offsets{};

  void add(size_t offset) { offsets[lanes++] = offset; }

  uint64_t extra_passes() const {
    std::array<uint64_t, kLanesMax> passes{};  // of each bank, or banks that are touched together
    for (unsigned i = 0; i < lanes; ++i) {
      const auto* const end = offsets.begin() + i;
      if (std::find(offsets.begin(), end, offsets[i]) == end) {
        ++passes[offsets[i] / kCopyBytes % kLanesMax];
      }
    }
    const uint64_t most = *std::ranges::max_element(passes);
    return most == 0 ? 0 : most - 1;
  }
};

// The accesses of one kind that not all lanes of a phase have come to yet.
struct Accesses {
  uint64_t first = 0;  // the order number of the front
  std::deque<Phase> phases;

  // Adds a lane's access of that order number. Returns the extra passes of phases that are over.
  uint64_t add(uint64_t number, size_t offset) {
    const size_t at = number - first;
    if (at >= phases.size()) phases.resize(at + 1);
    phases[at].add(offset);
    uint64_t extra = 0;
    while (!phases.empty() && phases.front().lanes == Phase::kLanesMax) {
      extra += phases.front().extra_passes();
      phases.pop_front();
      ++first;
    }
    return extra;
  }
  // Those of phases that some lanes never came to.
  uint64_t rest() const {
    uint64_t extra = 0;
    for (const Phase& phase : phases) extra += phase.extra_passes();
    return extra;
  }
};
struct QuarterWarp {
  Accesses copies;
  Accesses loads;
};

struct Warp {
  const Collective* collective = nullptr;  // of the lanes that wait
  unsigned waiting = 0;
  unsigned waiting_lane = 0;  // one of them
  Operands operands{};
  unsigned registers = 0;                  // of a thread
  std::vector<unsigned> register_changes;  // what setmaxnreg made of them
  std::array<QuarterWarp, 4> quarters;
};

// A product of a warpgroup that has been started: what each thread gave.
constexpr unsigned kGroupThreads = 128;
constexpr unsigned kGroupRows = 64;
size_t operand_place(uint64_t descriptor, unsigned row, unsigned k);
struct GroupProduct {
  struct Operand {
    int32_t* sums;
    std::array<uint32_t, 4> a;
  };
  std::array<Operand, kGroupThreads> operands{};
  unsigned given = 0;
  unsigned columns = 0;
  uint64_t descriptor = 0;  // of b
  bool is_a_shared = false;
  uint64_t a_descriptor = 0;  // then
  unsigned waited = 0;        // threads that have waited for it
  bool is_done = false;

  bool is_like(const GroupProduct& other) const {
    return columns == other.columns && descriptor == other.descriptor &&
           is_a_shared == other.is_a_shared && a_descriptor == other.a_descriptor;
  }
  // visit(place) for each chunk of both operands in shared memory.
  template <typename Visit>
  void for_chunks(const Visit& visit) const;
  void perform(const uint8_t* shared);
};

// Four warps.
struct Group {
  GroupProduct next;  // not all threads have come to it yet
  // Not all threads have waited for them. The first has this number.
  std::deque<GroupProduct> started;
  uint64_t first = 0;
};

enum class State { kReady, kWaiting, kEnded };

struct Thread {
  Context context;
  State state = State::kReady;
  uint3 index{};
  unsigned number = 0;
  unsigned lane = 0;
  Warp* warp = nullptr;
  std::vector<Copy> copies;  // not yet waited for
  uint64_t copies_issued = 0;
  uint64_t loads_done = 0;
  uint64_t groups_committed = 0;
  std::vector<size_t> arrived;  // chunks that it has waited for, and not published
  // Products of its warpgroup, counted from the first.
  uint64_t products_started = 0;
  std::deque<uint64_t> groups;  // committed, not waited for: products_started then
  uint64_t products_waited = 0;
  size_t awaited = kNoBarrier;  // a phase of this barrier
  bool awaits_registers = false;
  std::vector<uint64_t> seen;  // of each barrier, the complete phases that it knows of
  bool is_fenced = false;      // nothing has touched the registers of products since wgmma_fence()
};

uint4 read_16(const void* from) {
  uint4 value;
  std::memcpy(&value, from, sizeof value);
  return value;
}

std::string to_text(const char* what, uint3 index) {
  return std::string(what) + " (" + std::to_string(index.x) + ", " + std::to_string(index.y) +
         ", " + std::to_string(index.z) + ")";
}

void enter_thread();

// A launch, which has one block at a time.
class Machine {
 public:
  Machine(const Schedule& schedule, dim3 block, size_t shared_bytes,
          const std::function<void()>& thread, bool counts_conflicts)
      : schedule_(schedule),
        counts_conflicts_(counts_conflicts),
        thread_(thread),
        shared_bytes_(shared_bytes),
        shared_(static_cast<uint8_t*>(::operator new(shared_bytes, kSharedAlignment))),
        chunks_(shared_bytes / kCopyBytes + 1) {
    const unsigned count = block.x * block.y * block.z;
    threads_.resize(count);
    warps_.resize(count / kLanes);
    groups_.resize((count + kGroupThreads - 1) / kGroupThreads);
    for (unsigned i = 0; i < count; ++i) {
      threads_[i].number = i;
      threads_[i].lane = i % kLanes;
      threads_[i].warp = &warps_[i / kLanes];
      threads_[i].index = {i % block.x, i / block.x % block.y, i / block.x / block.y};
    }
  }

  void run_block() {
    std::memset(shared_.get(), 0xcd, shared_bytes_);
    std::ranges::fill(warps_, Warp{});
    std::ranges::fill(groups_, Group{});
    std::ranges::fill(chunks_, Chunk{});
    phase_barriers_.clear();
    boxes_.clear();
    free_registers_ = 0;
    for (Warp& warp : warps_) warp.registers = kRegisters / unsigned(threads_.size()) / 8 * 8;
    for (Thread& thread : threads_) start(thread);
    const auto has_ended = [](const Thread& thread) { return thread.state == State::kEnded; };
    run_until_stuck();
    while (!boxes_.empty() && !std::ranges::all_of(threads_, has_ended)) {
      const auto next = schedule_.backward ? boxes_.end() - 1 : boxes_.begin();
      const BoxCopy box = *next;
      boxes_.erase(next);
      land(box);
      run_until_stuck();
    }
    if (!std::ranges::all_of(threads_, has_ended)) {
      throw std::logic_error(to_text("block", blockIdx) + " is dead locked: " + census());
    }
    if (!boxes_.empty()) {
      throw std::logic_error(to_text("block", blockIdx) + " ended with " +
                             std::to_string(boxes_.size()) + " boxes on their way");
    }
    for (size_t i = 0; i < warps_.size(); ++i) {
      if (warps_[i].register_changes == warps_[i / 4 * 4].register_changes) continue;
      throw std::logic_error(to_text("block", blockIdx) +
                             ": setmaxnreg of some warps of a warpgroup");
    }
    for (const Warp& warp : warps_) {
      for (const QuarterWarp& quarter : warp.quarters) {
        conflicts_ += quarter.copies.rest() + quarter.loads.rest();
      }
    }
  }

  uint64_t conflicts() const { return conflicts_; }

  // The rest is called by fibers.

  // The body of a fiber, from its beginning to its end.
  void run_thread() {
    try {
      thread_();
      if (const size_t count = running_->copies.size(); count != 0) {
        fail("ended with " + std::to_string(count) +
             " asynchronous copies that it had not waited for");
      }
      if (const uint64_t count = running_->products_started - running_->products_waited;
          count != 0) {
        fail("ended with " + std::to_string(count) + " products that it had not waited for");
      }
    } catch (...) {
      error_ = std::current_exception();
    }
    running_->state = State::kEnded;
    switch_context(running_->context, host_, true);
    std::abort();  // it does not return
  }

  [[noreturn]] void fail(const std::string& what) const {
    throw std::logic_error(to_text("block", blockIdx) + ", " + to_text("thread", running_->index) +
                           ": " + what);
  }

  // Each warp in turn, and before the next one those that were waiting for a phase that is
  // complete.
  void run_until_stuck() {
    for (bool progress = true; progress;) {
      progress = false;
      for (size_t i = 0; i < warps_.size(); ++i) {
        progress |= run_warp(schedule_.backward ? warps_.size() - 1 - i : i);
        while (!urgent_.empty()) {
          const size_t warp = urgent_.back();
          urgent_.pop_back();
          run_warp(warp);
          progress = true;
        }
      }
    }
  }

  // Returns when all lanes of the warp have called it and it is done.
  void join_warp(const Collective& collective, void* operands) {
    Warp& warp = *running_->warp;
    arrive(collective);
    warp.operands[running_->lane] = operands;
    if (warp.waiting < kLanes) return wait();
    collective.perform(warp.operands);
    release(warp);
  }

  void join_block(const Collective& collective) {
    arrive(collective);
    if (++at_barrier_ < threads_.size()) return wait();
    at_barrier_ = 0;
    ++barriers_;
    share_what_is_seen();
    for (Warp& warp : warps_) release(warp);
  }

  bool omits(Step step) const { return schedule_.omitted == step; }

  void fence_products() { running_->is_fenced = true; }

  // Returns when all threads of the warpgroup have come to the same product. `mine`: what it is,
  // without the operands of others.
  void start_group_product(const Collective& collective, const GroupProduct& mine,
                           const GroupProduct::Operand& operand) {
    require_descriptor(mine.descriptor);
    if (mine.is_a_shared) require_descriptor(mine.a_descriptor);
    const size_t first_warp = static_cast<size_t>(running_->warp - warps_.data()) / 4 * 4;
    if (first_warp + 4 > warps_.size()) fail("wgmma_s8_s8 of less than four warps");
    // PTX ISA, "wgmma.fence": before the first product, and whenever registers were touched that a
    // product takes or adds to. They may have been after every wait.
    if (!running_->is_fenced) fail("wgmma_s8_s8 without wgmma_fence() before");
    Group& group = groups_[first_warp / 4];
    GroupProduct& product = group.next;
    if (product.given != 0 && !product.is_like(mine)) {
      fail("wgmma_s8_s8 of other limbs than another thread's");
    }
    arrive(collective);
    if (product.given == 0) product = mine;
    product.operands[running_->number % kGroupThreads] = operand;
    ++running_->products_started;
    if (++product.given < kGroupThreads) return wait();
    const std::vector<uint64_t> seen = seen_by_all_of(first_warp * kLanes);
    product.for_chunks([&](size_t place) {
      if (place + kCopyBytes > shared_bytes_) fail("wgmma_s8_s8 of limbs beyond shared memory");
      require_published(place / kCopyBytes, seen);
      ++chunks_[place / kCopyBytes].products;
    });
    if (schedule_.early_copies) product.perform(shared_.get());
    group.started.push_back(product);
    product = {};
    for (size_t i = 0; i < 4; ++i) release(warps_[first_warp + i]);
  }

  void commit_group_products() { running_->groups.push_back(running_->products_started); }

  // Of a whole warp at a time: those that its threads have committed, without the last groups.
  void wait_for_group_products(unsigned pending, const Collective& collective) {
    arrive(collective);
    Warp& warp = *running_->warp;
    if (warp.waiting < kLanes) return wait();
    Thread* const lanes = &threads_[running_->number / kLanes * kLanes];
    for (unsigned i = 0; i < kLanes; ++i) wait_for_group_products(pending, lanes[i]);
    release(warp);
  }

  void publish_shared() {
    for (const size_t number : running_->arrived) {
      Chunk& chunk = chunks_[number];
      if (chunk.state != Chunk::State::kArrived || chunk.writer != running_->number) continue;
      chunk.state = Chunk::State::kPublished;
      chunk.published_at = barriers_;
    }
    running_->arrived.clear();
  }

  void require_full_mask(unsigned mask, const Collective& collective) const {
    if (mask != ~0u) {
      fail(std::string(collective.name) + " with a mask of some lanes, which is not emulated");
    }
  }

  uint8_t* shared() const { return shared_.get(); }
  unsigned lane() const { return running_->lane; }

  // How far into shared memory this many bytes are, which are aligned to as many.
  size_t shared_offset(const void* address, const char* what, size_t bytes = kCopyBytes) const {
    // Of an address below, it wraps around to an offset that is too large as well.
    const size_t offset =
        reinterpret_cast<uintptr_t>(address) - reinterpret_cast<uintptr_t>(shared());
    const bool inside = shared_bytes_ >= bytes && offset <= shared_bytes_ - bytes;
    if (inside && offset % bytes == 0) return offset;
    fail(std::string(what) + " at byte " + std::to_string(static_cast<ptrdiff_t>(offset)) +
         " of shared memory, which is " +
         (inside ? "not a multiple of " + std::to_string(bytes)
                 : "outside of the block's " + std::to_string(shared_bytes_)));
  }

  void issue_copy(void* shared, const void* global) {
    const size_t offset = shared_offset(shared, "copy_16_async");
    if (reinterpret_cast<uintptr_t>(global) % kCopyBytes != 0) {
      fail("copy_16_async of a global address that is not a multiple of 16");
    }
    Thread& thread = *running_;
    const Copy copy{static_cast<uint8_t*>(shared), global, thread.groups_committed,
                    offset / kCopyBytes};
    thread.copies.push_back(copy);
    begin_writing(copy.chunk);
    if (schedule_.early_copies) copy.perform();
    if (counts_conflicts_) {
      conflicts_ +=
          thread.warp->quarters[thread.lane / 8].copies.add(thread.copies_issued++, offset);
    }
  }

  void init_barrier(const void* barrier, uint32_t arrivals) {
    const size_t offset = shared_offset(barrier, "init_barrier", sizeof(uint64_t));
    if (arrivals == 0 || arrivals > kBarrierCountMax) {
      fail("init_barrier of " + std::to_string(arrivals) + " arrivals, not from 1 to 2^20 - 1");
    }
    if (find_barrier(offset) != kNoBarrier) {
      fail("init_barrier at byte " + std::to_string(offset) + ", where a barrier is");
    }
    phase_barriers_.push_back({offset, arrivals, arrivals, running_->number});
  }

  // PTX ISA, "fence.mbarrier_init".
  void publish_barriers() {
    for (PhaseBarrier& barrier : phase_barriers_) {
      if (barrier.initializer != running_->number || barrier.is_published) continue;
      barrier.is_published = true;
      barrier.published_at = barriers_;
    }
  }

  void arrive_at(const void* at, uint32_t bytes, const char* what) {
    const size_t number = use_barrier(at, what, false);
    PhaseBarrier& barrier = phase_barriers_[number];
    if (barrier.pending == 0) {
      fail(place_of(barrier, what) + ", where all have arrived in this phase");
    }
    if (bytes > kBarrierCountMax || barrier.bytes + bytes > kBarrierCountMax) {
      fail(place_of(barrier, what) + ", which expects more than 2^20 - 1 bytes");
    }
    barrier.bytes += bytes;
    --barrier.pending;
    if (!complete(number)) return;
    // Fibers that wait for this go first.
    switch_context(running_->context, host_);
  }

  void wait_for_phase(const void* at, uint32_t parity) {
    if (parity > 1) fail("wait_for_phase of parity " + std::to_string(parity));
    const size_t number = use_barrier(at, "wait_for_phase", false);
    Thread& thread = *running_;
    while (phase_barriers_[number].phase % 2 == parity) {
      thread.awaited = number;
      thread.state = State::kWaiting;
      wait();
    }
    thread.awaited = kNoBarrier;
    if (thread.seen.size() <= number) thread.seen.resize(number + 1);
    thread.seen[number] = phase_barriers_[number].phase;
  }

  void copy_box(void* to, const void* map, uint32_t row, uint32_t column, const void* barrier) {
    const TiledMap tiled = read_map(map);
    const size_t offset = shared_offset(
        to, "copy_box", tiled.shape.swizzle == BoxSwizzle::kNone ? 128 : kSwizzleBytes);
    const size_t number = use_barrier(barrier, "copy_box", true);
    const BoxCopy box{offset, tiled, static_cast<int32_t>(row), static_cast<int32_t>(column),
                      number};
    if (tiled.shape.box_bytes() > shared_bytes_ - offset) fail("copy_box beyond shared memory");
    box.for_chunks([&](uint32_t c, uint32_t byte) {
      const size_t chunk = box.place(c, byte) / kCopyBytes;
      for (const PhaseBarrier& other : phase_barriers_) {
        if (other.offset / kCopyBytes == chunk) fail("copy_box to where a barrier is");
      }
      begin_writing(chunk);
    });
    if (schedule_.early_copies) return land(box);
    boxes_.push_back(box);
  }

  // Of one lane, when its warp has come.
  void set_registers(unsigned count, bool takes) {
    Warp& warp = *running_->warp;
    const char* const name = takes ? "take_registers" : "give_up_registers";
    if (takes ? count < warp.registers : count > warp.registers) {
      fail(std::string(name) + " of " + std::to_string(count) + ", and a thread has " +
           std::to_string(warp.registers));
    }
    Thread& thread = *running_;
    for (; takes && (count - warp.registers) * kLanes > free_registers_;
         thread.awaits_registers = false) {
      thread.awaits_registers = true;
      thread.state = State::kWaiting;
      wait();
    }
    free_registers_ += warp.registers * kLanes;
    free_registers_ -= count * kLanes;
    warp.registers = count;
    warp.register_changes.push_back(count);
    if (takes) return;
    for (Thread& other : threads_) {
      if (other.awaits_registers) other.state = State::kReady;
    }
  }

  void commit_copies() { ++running_->groups_committed; }

  void wait_for_copies(unsigned pending) {
    Thread& thread = *running_;
    auto copy = thread.copies.begin();
    for (; copy != thread.copies.end() && copy->group + pending < thread.groups_committed; ++copy) {
      if (!schedule_.early_copies) copy->perform();
      Chunk& chunk = chunks_[copy->chunk];
      chunk.state = Chunk::State::kArrived;
      chunk.arrived_at = barriers_;
      thread.arrived.push_back(copy->chunk);
    }
    thread.copies.erase(thread.copies.begin(), copy);
  }

  uint4 load(const void* shared) {
    const size_t offset = shared_offset(shared, "load_shared_16");
    read_chunk(offset / kCopyBytes);
    Thread& thread = *running_;
    if (counts_conflicts_) {
      conflicts_ += thread.warp->quarters[thread.lane / 8].loads.add(thread.loads_done++, offset);
    }
    return read_16(shared);
  }

 private:
  static constexpr size_t kSwizzleBytes = 1024;
  static constexpr std::align_val_t kSharedAlignment{kSwizzleBytes};
  static constexpr unsigned kRegisters = 65536;
  struct FreeShared {
    void operator()(uint8_t* memory) const { ::operator delete(memory, kSharedAlignment); }
  };

  static std::string place_of(size_t chunk) { return "byte " + std::to_string(chunk * kCopyBytes); }

  static std::string place_of(const PhaseBarrier& barrier, const char* what) {
    return std::string(what) + " at the barrier at byte " + std::to_string(barrier.offset);
  }

  size_t find_barrier(size_t offset) const {
    const auto at = std::ranges::find(phase_barriers_, offset, &PhaseBarrier::offset);
    return at == phase_barriers_.end() ? kNoBarrier
                                       : static_cast<size_t>(at - phase_barriers_.begin());
  }

  // The number of a barrier that the running thread, or the accelerator, may know of.
  size_t use_barrier(const void* at, const char* what, bool by_accelerator) const {
    const size_t offset = shared_offset(at, what, sizeof(uint64_t));
    const size_t number = find_barrier(offset);
    if (number == kNoBarrier) {
      fail(std::string(what) + " at byte " + std::to_string(offset) + ", where no barrier is");
    }
    const PhaseBarrier& barrier = phase_barriers_[number];
    const bool is_mine = barrier.initializer == running_->number;
    if (!barrier.is_published && (by_accelerator || !is_mine)) {
      fail(place_of(barrier, what) + ", which publish_barriers() did not publish");
    }
    if (!is_mine && barrier.published_at == barriers_) {
      fail(place_of(barrier, what) + ", which was published with no barrier of the block since");
    }
    return number;
  }

  // Whether the phase is complete, so that the next one begins and those who waited run.
  bool complete(size_t number) {
    PhaseBarrier& barrier = phase_barriers_[number];
    if (barrier.pending != 0 || barrier.bytes != 0) return false;
    ++barrier.phase;
    barrier.pending = barrier.arrivals;
    for (Thread& thread : threads_) {
      if (thread.awaited != number || thread.state != State::kWaiting) continue;
      thread.state = State::kReady;
      const size_t warp = thread.number / kLanes;
      if (urgent_.empty() || urgent_.back() != warp) urgent_.push_back(warp);
    }
    return true;
  }

  void land(const BoxCopy& box) {
    PhaseBarrier& barrier = phase_barriers_[box.barrier];
    box.perform(shared_.get());
    box.for_chunks([&](uint32_t c, uint32_t byte) {
      Chunk& chunk = chunks_[box.place(c, byte) / kCopyBytes];
      chunk.state = Chunk::State::kInBox;
      chunk.barrier = box.barrier;
      chunk.phase = barrier.phase;
    });
    if (box.map.shape.box_bytes() > barrier.bytes) {
      throw std::logic_error(to_text("block", blockIdx) + ": a box brings " +
                             std::to_string(box.map.shape.box_bytes()) +
                             " bytes to the barrier at byte " + std::to_string(barrier.offset) +
                             ", which expects " + std::to_string(barrier.bytes));
    }
    barrier.bytes -= box.map.shape.box_bytes();
    complete(box.barrier);
  }

  // A barrier of the block tells each what the others knew.
  void share_what_is_seen() {
    if (phase_barriers_.empty()) return;
    std::vector<uint64_t> seen(phase_barriers_.size());
    for (const Thread& thread : threads_) {
      for (size_t i = 0; i < thread.seen.size(); ++i) seen[i] = std::max(seen[i], thread.seen[i]);
    }
    for (Thread& thread : threads_) thread.seen = seen;
  }

  // Of each barrier, the phases that every thread of a warpgroup knows of.
  std::vector<uint64_t> seen_by_all_of(size_t first_thread) const {
    std::vector<uint64_t> seen(phase_barriers_.size(), ~uint64_t{0});
    for (size_t i = 0; i < kGroupThreads; ++i) {
      const std::vector<uint64_t>& of_thread = threads_[first_thread + i].seen;
      for (size_t b = 0; b < seen.size(); ++b) {
        seen[b] = std::min(seen[b], b < of_thread.size() ? of_thread[b] : 0);
      }
    }
    return seen;
  }

  void wait_for_group_products(unsigned pending, Thread& thread) {
    Group& group = groups_[thread.number / kGroupThreads];
    for (; thread.groups.size() > pending; thread.groups.pop_front()) {
      for (; thread.products_waited < thread.groups.front(); ++thread.products_waited) {
        GroupProduct& product = group.started[thread.products_waited - group.first];
        product.perform(shared_.get());
        if (++product.waited == kGroupThreads) {
          product.for_chunks([&](size_t place) { --chunks_[place / kCopyBytes].products; });
        }
      }
    }
    for (; !group.started.empty() && group.started.front().waited == kGroupThreads; ++group.first) {
      group.started.pop_front();
    }
    thread.is_fenced = false;
  }

  void require_descriptor(uint64_t descriptor) const {
    if ((descriptor >> 62) != 1 || (descriptor >> 49 & 7) != 0) {
      fail(
          "wgmma_s8_s8 of limbs without the 128-byte swizzle, or with a base offset, which is not "
          "emulated");
    }
    if (const size_t offset = (descriptor & 0x3fff) << 4;
        offset % 128 % 32 != 0 || offset / 128 % 8 != 0) {
      fail("wgmma_s8_s8 of limbs that begin at byte " + std::to_string(offset) +
           ", not in the first of eight rows");
    }
  }

  void begin_writing(size_t number) {
    Chunk& chunk = chunks_[number];
    if (chunk.state == Chunk::State::kOnItsWay) {
      fail("copies to " + place_of(number) + ", where another copy is on its way to");
    }
    if (chunk.products != 0) {
      fail("copies to " + place_of(number) +
           ", which a product reads that not all have waited for");
    }
    const bool others_read = chunk.has_readers || chunk.reader != running_->number;
    if (chunk.reader != kNobody && chunk.read_at == barriers_ && others_read) {
      fail("copies to " + place_of(number) + ", which another thread reads, with no barrier since");
    }
    chunk.state = Chunk::State::kOnItsWay;
    chunk.writer = running_->number;
  }

  void read_chunk(size_t number) {
    Chunk& chunk = chunks_[number];
    if (chunk.state == Chunk::State::kOnItsWay) {
      fail("reads " + place_of(number) + ", where a copy is on its way to");
    }
    if (chunk.state == Chunk::State::kInBox) {
      const std::vector<uint64_t>& seen = running_->seen;
      if (chunk.barrier >= seen.size() || seen[chunk.barrier] <= chunk.phase) {
        fail("reads " + place_of(number) + " of a box, whose phase it has not waited for");
      }
    }
    if (chunk.state != Chunk::State::kPlain && chunk.state != Chunk::State::kInBox &&
        chunk.writer != running_->number && chunk.arrived_at == barriers_) {
      fail("reads " + place_of(number) +
           ", which another thread's copy brought, with no barrier since");
    }
    if (chunk.read_at != barriers_ || chunk.reader == kNobody) {
      chunk.reader = running_->number;
      chunk.has_readers = false;
    } else if (chunk.reader != running_->number) {
      chunk.has_readers = true;
    }
    chunk.read_at = barriers_;
  }

  void require_published(size_t number, const std::vector<uint64_t>& seen) const {
    const Chunk& chunk = chunks_[number];
    switch (chunk.state) {
      case Chunk::State::kPlain:
        return;
      case Chunk::State::kOnItsWay:
        fail("starts a product of " + place_of(number) + ", where a copy is on its way to");
      case Chunk::State::kArrived:
        fail("starts a product of " + place_of(number) +
             ", which a copy brought and publish_shared() did not publish");
      case Chunk::State::kPublished:
        if (chunk.published_at < barriers_) return;
        fail("starts a product of " + place_of(number) +
             ", which was published with no barrier since");
      case Chunk::State::kInBox:
        if (seen[chunk.barrier] > chunk.phase) return;
        fail("starts a product of " + place_of(number) +
             " of a box, whose phase not all of its threads have waited for");
    }
  }

  void start(Thread& thread) {
    thread.state = State::kReady;
    thread.arrived.clear();
    thread.products_started = 0;
    thread.groups.clear();
    thread.awaited = kNoBarrier;
    thread.awaits_registers = false;
    thread.seen.clear();
    thread.products_waited = 0;
    thread.is_fenced = false;
    thread.copies_issued = 0;
    thread.loads_done = 0;
    thread.groups_committed = 0;
    prepare_context(thread.context, thread.number, enter_thread);
  }

  // Until every lane waits for another warp or has ended. Returns whether anything ran.
  bool run_warp(size_t number) {
    const std::span lanes = std::span(threads_).subspan(number * kLanes, kLanes);
    bool ran = false;
    for (bool again = true; again;) {
      again = false;
      for (unsigned i = 0; i < kLanes; ++i) {
        Thread& thread = lanes[schedule_.backward ? kLanes - 1 - i : i];
        if (thread.state != State::kReady) continue;
        again = true;
        resume(thread);
        if (!urgent_.empty()) return true;
      }
      ran |= again;
    }
    return ran;
  }

  void resume(Thread& thread) {
    running_ = &thread;
    threadIdx = thread.index;
    switch_context(host_, thread.context);
    if (error_) std::rethrow_exception(error_);
  }

  void arrive(const Collective& collective) {
    Warp& warp = *running_->warp;
    if (warp.waiting != 0 && warp.collective != &collective) {
      fail(std::string("waits at ") + collective.name + " and lane " +
           std::to_string(warp.waiting_lane) + " of its warp at " + warp.collective->name);
    }
    warp.collective = &collective;
    warp.waiting_lane = running_->lane;
    ++warp.waiting;
    running_->state = State::kWaiting;
  }

  void wait() { switch_context(running_->context, host_); }

  void release(Warp& warp) {
    warp.waiting = 0;
    Thread* const lanes = &threads_[static_cast<size_t>(&warp - warps_.data()) * kLanes];
    for (unsigned i = 0; i < kLanes; ++i) lanes[i].state = State::kReady;
  }

  std::string doing(const Thread& thread) const {
    if (thread.state == State::kEnded) return "ended";
    if (thread.awaits_registers) return "waiting for registers";
    if (thread.awaited == kNoBarrier) {
      return std::string("waiting at ") + thread.warp->collective->name;
    }
    const PhaseBarrier& barrier = phase_barriers_[thread.awaited];
    return "waiting for phase " + std::to_string(barrier.phase) + " of the barrier at byte " +
           std::to_string(barrier.offset) + ", where " + std::to_string(barrier.pending) +
           " arrivals and " + std::to_string(barrier.bytes) + " bytes are missing";
  }

  // Which threads are where, for a person who has to find out why.
  std::string census() const {
    struct Place {
      std::string name;
      const Thread* first;
      size_t count;
    };
    std::vector<Place> places;
    for (const Thread& thread : threads_) {
      const std::string name = doing(thread);
      const auto place = std::ranges::find(places, name, &Place::name);
      if (place == places.end()) {
        places.push_back({name, &thread, 1});
      } else {
        ++place->count;
      }
    }
    std::string text;
    for (const Place& place : places) {
      text += (text.empty() ? "" : ", ") + std::to_string(place.count) + " threads " + place.name +
              " (" + to_text("the first is", place.first->index) + ")";
    }
    return text;
  }

  const Schedule schedule_;
  const bool counts_conflicts_;
  const std::function<void()>& thread_;
  const size_t shared_bytes_;
  // Not a byte more than was asked for, so that AddressSanitizer sees a plain access beyond it.
  const std::unique_ptr<uint8_t, FreeShared> shared_;
  std::vector<Chunk> chunks_;
  std::vector<Thread> threads_;
  std::vector<Warp> warps_;
  std::vector<Group> groups_;
  std::vector<PhaseBarrier> phase_barriers_;
  std::vector<BoxCopy> boxes_;  // on their way
  std::vector<size_t> urgent_;  // warps of threads that a complete phase lets go on
  unsigned free_registers_ = 0;
  Context host_;
  Thread* running_ = nullptr;
  size_t at_barrier_ = 0;
  uint64_t barriers_ = 0;  // that all threads have passed
  uint64_t conflicts_ = 0;
  std::exception_ptr error_;

  friend void enter_thread();
};

Machine* machine = nullptr;
bool wgmma_code_runs = true;

struct CurrentMachine {
  explicit CurrentMachine(Machine& current) { machine = &current; }
  ~CurrentMachine() { machine = nullptr; }
};

void enter_thread() {
  arrive_from(machine->host_);
  machine->run_thread();
}

template <typename T>
T& operands_of(const Operands& operands, unsigned lane) {
  return *static_cast<T*>(operands[lane]);
}

// PTX ISA, "Matrix descriptor" and "Strides": row m of a, and column n of b, lie their number % 8
// times 128 bytes and number / 8 times the stride dimension's distance after the address, 32 bytes
// of them. With the 128-byte swizzle bits 4 .. 6 of every address are exclusive-or-ed with bits 7
// .. 9.
size_t operand_place(uint64_t descriptor, unsigned row, unsigned k) {
  const size_t address = (descriptor & 0x3fff) << 4;
  const size_t eight_rows = (descriptor >> 32 & 0x3fff) << 4;
  const size_t linear = address + row / 8 * eight_rows + row % 8 * 128 + k;
  return linear ^ (linear >> 7 & 7) << 4;
}

template <typename Visit>
void GroupProduct::for_chunks(const Visit& visit) const {
  const auto of_operand = [&](uint64_t which, unsigned rows) {
    for (unsigned row = 0; row < rows; ++row) {
      for (unsigned k = 0; k < 32; k += kCopyBytes) visit(operand_place(which, row, k));
    }
  };
  of_operand(descriptor, columns);
  if (is_a_shared) of_operand(a_descriptor, kGroupRows);
}

// PTX ISA, "Register fragments for wgmma.m64nNk32": each warp has 16 rows of A and of the sums,
// laid out as those of mma.m16n8k32, the sums for every eight columns.
void GroupProduct::perform(const uint8_t* shared) {
  if (is_done) return;
  is_done = true;
  // Wider than bytes, as in perform_mma().
  using Row = std::array<int16_t, 32>;
  const auto read = [&](uint64_t which, unsigned row, Row& to) {
    for (unsigned k = 0; k < 32; ++k) {
      to[k] = static_cast<int8_t>(shared[operand_place(which, row, k)]);
    }
  };
  std::vector<Row> b(columns);
  for (unsigned column = 0; column < columns; ++column) read(descriptor, column, b[column]);
  for (unsigned warp = 0; warp < kGroupThreads / kLanes; ++warp) {
    std::array<Row, 16> a;
    for (unsigned row = 0; is_a_shared && row < 16; ++row) {
      read(a_descriptor, warp * 16 + row, a[row]);
    }
    for (unsigned lane = 0; !is_a_shared && lane < kLanes; ++lane) {
      const auto& mine = operands[warp * kLanes + lane].a;
      for (unsigned i = 0; i < 16; ++i) {
        a[lane / 4 + i / 4 % 2 * 8][lane % 4 * 4 + i % 4 + i / 8 * 16] =
            static_cast<int8_t>(mine[i / 4] >> 8 * (i % 4));
      }
    }
    for (unsigned lane = 0; lane < kLanes; ++lane) {
      int32_t* const sums = operands[warp * kLanes + lane].sums;
      for (unsigned i = 0; i < columns / 2; ++i) {
        const Row& row = a[lane / 4 + i % 4 / 2 * 8];
        const Row& column = b[i / 4 * 8 + lane % 4 * 2 + i % 2];
        int32_t product = 0;
        for (unsigned k = 0; k < 32; ++k) product += row[k] * column[k];
        sums[i] =
            static_cast<int32_t>(static_cast<uint32_t>(sums[i]) + static_cast<uint32_t>(product));
      }
    }
  }
}

struct MmaOperands {
  int32_t (*sums)[4];
  const uint32_t (&a)[4];
  const uint32_t (*b)[2];
};

// PTX ISA, "Matrix fragments for mma.m16n8k32": a lane is of group l/4, and the l%4-th in it. Of A
// it has, in rows group and group+8, 4 columns of each half; of B, in column group, the same rows;
// of the sums, 2 columns of those two rows. kCount products with the same A.
template <unsigned kCount>
void perform_mma(const Operands& operands) {
  // Wider than bytes, as the processor multiplies eight of these at a time.
  const auto widen = [](uint32_t word, int16_t* to) {
    for (unsigned i = 0; i < 4; ++i) to[i] = static_cast<int8_t>(word >> 8 * i);
  };
  int16_t a[16][32];
  for (unsigned lane = 0; lane < kLanes; ++lane) {
    const auto& mine = operands_of<MmaOperands>(operands, lane);
    for (unsigned i = 0; i < 4; ++i) {
      widen(mine.a[i], &a[lane / 4 + i % 2 * 8][lane % 4 * 4 + i / 2 * 16]);
    }
  }
  for (unsigned n = 0; n < kCount; ++n) {
    int16_t b[8][32];  // column after column
    for (unsigned lane = 0; lane < kLanes; ++lane) {
      const auto& mine = operands_of<MmaOperands>(operands, lane);
      for (unsigned i = 0; i < 2; ++i) widen(mine.b[n][i], &b[lane / 4][lane % 4 * 4 + i * 16]);
    }
    for (unsigned lane = 0; lane < kLanes; ++lane) {
      for (unsigned i = 0; i < 4; ++i) {
        const int16_t* const row = a[lane / 4 + i / 2 * 8];
        const int16_t* const column = b[lane % 4 * 2 + i % 2];
        int32_t product = 0;
        for (unsigned k = 0; k < 32; ++k) product += row[k] * column[k];
        int32_t& sum = operands_of<MmaOperands>(operands, lane).sums[n][i];
        sum = static_cast<int32_t>(static_cast<uint32_t>(sum) + static_cast<uint32_t>(product));
      }
    }
  }
}

struct WordOperands {
  uint32_t value;
  unsigned source;  // of a shuffle
  uint32_t result;
};

void perform_shuffle(const Operands& operands) {
  for (unsigned lane = 0; lane < kLanes; ++lane) {
    auto& mine = operands_of<WordOperands>(operands, lane);
    mine.result = operands_of<WordOperands>(operands, mine.source).value;
  }
}

void perform_reduce_add(const Operands& operands) {
  uint32_t sum = 0;
  for (unsigned lane = 0; lane < kLanes; ++lane) {
    sum += operands_of<WordOperands>(operands, lane).value;
  }
  for (unsigned lane = 0; lane < kLanes; ++lane) {
    operands_of<WordOperands>(operands, lane).result = sum;
  }
}

constexpr Collective kSyncThreads{"__syncthreads", nullptr};
constexpr Collective kSyncWarp{"__syncwarp", [](const Operands&) {}};
constexpr Collective kReduceAdd{"__reduce_add_sync", perform_reduce_add};
constexpr Collective kShuffle{"__shfl_sync", perform_shuffle};
constexpr Collective kShuffleXor{"__shfl_xor_sync", perform_shuffle};
constexpr Collective kMmaSigned{"mma_s8_s8", perform_mma<1>};
constexpr Collective kMmaSignedFour{"mma_s8_s8_four", perform_mma<4>};
constexpr Collective kWgmma{"wgmma_s8_s8", nullptr};
constexpr Collective kWgmmaWait{"wgmma_wait", nullptr};
constexpr Collective kGiveUpRegisters{"give_up_registers", [](const Operands&) {}};
constexpr Collective kTakeRegisters{"take_registers", [](const Operands&) {}};

uint32_t exchange(const Collective& collective, unsigned mask, uint32_t value, unsigned source) {
  machine->require_full_mask(mask, collective);
  WordOperands operands{value, source % kLanes, 0};
  machine->join_warp(collective, &operands);
  return operands.result;
}

}  // namespace

LaunchReport run_grid(const Schedule& schedule, dim3 grid, dim3 block, size_t shared_bytes,
                      const std::function<void()>& thread, bool counts_conflicts) {
  const uint64_t threads = uint64_t{block.x} * block.y * block.z;
  if (threads == 0 || threads > kMaxThreads || threads % kLanes != 0) {
    throw std::logic_error("a block of " + std::to_string(threads) +
                           " threads: it must be a multiple of 32, at most 1024");
  }
  if (grid.x == 0 || grid.y == 0 || grid.z == 0) throw std::logic_error("a grid without blocks");
  if (grid.x > kGridMax.x || grid.y > kGridMax.y || grid.z > kGridMax.z) {
    throw std::logic_error(to_text("a grid of", {grid.x, grid.y, grid.z}) +
                           " blocks: there may be " +
                           to_text("up to", {kGridMax.x, kGridMax.y, kGridMax.z}));
  }
  Machine launched(schedule, block, shared_bytes, thread, counts_conflicts);
  const CurrentMachine current(launched);
  gridDim = grid;
  blockDim = block;
  for (unsigned z = 0; z < grid.z; ++z) {
    for (unsigned y = 0; y < grid.y; ++y) {
      for (unsigned x = 0; x < grid.x; ++x) {
        blockIdx = {x, y, z};
        const bool is_last = x + 1 == grid.x && y + 1 == grid.y && z + 1 == grid.z;
        if (is_last && schedule.omits_last_block) continue;
        launched.run_block();
      }
    }
  }
  return {launched.conflicts()};
}

void wait_for_copies(unsigned pending) {
  if (machine->omits(Step::kCopyWait)) return;
  machine->wait_for_copies(pending);
}

uint32_t shuffle(unsigned mask, uint32_t value, unsigned source_lane) {
  return exchange(kShuffle, mask, value, source_lane);
}

uint32_t shuffle_xor(unsigned mask, uint32_t value, unsigned lane_mask) {
  return exchange(kShuffleXor, mask, value, machine->lane() ^ lane_mask);
}

uint32_t reduce_add(unsigned mask, uint32_t value) { return exchange(kReduceAdd, mask, value, 0); }

void synchronize_block() {
  if (machine->omits(Step::kBlockBarrier)) return;
  machine->join_block(kSyncThreads);
}

void synchronize_warp(unsigned mask) {
  machine->require_full_mask(mask, kSyncWarp);
  machine->join_warp(kSyncWarp, nullptr);
}

void start_group_product(int32_t* sums, unsigned columns, const uint32_t (&a)[4],
                         uint64_t descriptor) {
  GroupProduct product;
  product.columns = columns;
  product.descriptor = descriptor;
  machine->start_group_product(kWgmma, product, {sums, {a[0], a[1], a[2], a[3]}});
}

void start_shared_product(int32_t* sums, unsigned columns, uint64_t a_descriptor,
                          uint64_t descriptor) {
  GroupProduct product;
  product.columns = columns;
  product.descriptor = descriptor;
  product.is_a_shared = true;
  product.a_descriptor = a_descriptor;
  machine->start_group_product(kWgmma, product, {sums, {}});
}

void wait_for_group_products(unsigned pending) {
  if (machine->omits(Step::kWgmmaWait)) return;
  machine->wait_for_group_products(pending, kWgmmaWait);
}

void set_registers(unsigned count, bool takes) {
  machine->join_warp(takes ? kTakeRegisters : kGiveUpRegisters, nullptr);
  if (machine->lane() == 0) machine->set_registers(count, takes);
}

uint32_t shared_address(const void* shared) {
  return static_cast<uint32_t>(machine->shared_offset(shared, "wgmma_s8_s8"));
}

void set_wgmma_code(bool runs) { wgmma_code_runs = runs; }

uint32_t permute_bytes(uint32_t x, uint32_t y, uint32_t selector) {
  // CUDA's documents ignore these bits; the instruction repeats the byte's sign where they are set.
  if ((selector & 0x8888) != 0) machine->fail("__byte_perm with the highest bit of a selector set");
  const uint64_t bytes = uint64_t{y} << 32 | x;
  uint32_t result = 0;
  for (unsigned i = 0; i < 4; ++i) {
    const uint64_t byte = bytes >> (selector >> (4 * i) & 7) * 8 & 0xff;
    result |= static_cast<uint32_t>(byte) << (8 * i);
  }
  return result;
}

}  // namespace blindfuse::emulator

namespace blindfuse {

uint8_t* dynamic_shared_memory() { return emulator::machine->shared(); }

void copy_16_async(void* shared, const void* global) {
  emulator::machine->issue_copy(shared, global);
}

void commit_copies() { emulator::machine->commit_copies(); }

uint4 load_shared_16(const void* shared) { return emulator::machine->load(shared); }

uint4 load_once_16(const void* global) {
  if (reinterpret_cast<uintptr_t>(global) % 16 != 0) {
    emulator::machine->fail("load_once_16 of an address that is not a multiple of 16");
  }
  return emulator::read_16(global);
}

uint64_t evict_first_policy() { return emulator::kEvictFirst; }

uint4 load_once_16(const void* global, uint64_t policy) {
  if (policy != emulator::kEvictFirst) {
    emulator::machine->fail("load_once_16 with a policy that evict_first_policy() did not make");
  }
  return load_once_16(global);
}

void mma_s8_s8(int32_t (&sums)[4], const uint32_t (&a)[4], const uint32_t (&b)[2]) {
  emulator::MmaOperands operands{&sums, a, &b};
  emulator::machine->join_warp(emulator::kMmaSigned, &operands);
}

void mma_s8_s8_four(int32_t (*sums)[4], const uint32_t (&a)[4], const uint32_t (&b)[4][2]) {
  emulator::MmaOperands operands{sums, a, b};
  emulator::machine->join_warp(emulator::kMmaSignedFour, &operands);
}

bool runs_wgmma_code() { return emulator::wgmma_code_runs; }

void publish_shared() {
  if (emulator::machine->omits(emulator::Step::kPublish)) return;
  emulator::machine->publish_shared();
}

void wgmma_fence() {
  if (emulator::machine->omits(emulator::Step::kWgmmaFence)) return;
  emulator::machine->fence_products();
}

void wgmma_commit() {
  if (emulator::machine->omits(emulator::Step::kWgmmaCommit)) return;
  emulator::machine->commit_group_products();
}

void init_barrier(uint64_t* barrier, uint32_t arrivals) {
  emulator::machine->init_barrier(barrier, arrivals);
}

void publish_barriers() {
  if (emulator::machine->omits(emulator::Step::kPublishBarriers)) return;
  emulator::machine->publish_barriers();
}

void arrive(uint64_t* barrier) {
  if (emulator::machine->omits(emulator::Step::kArrive)) return;
  emulator::machine->arrive_at(barrier, 0, "arrive");
}

void arrive_and_expect(uint64_t* barrier, uint32_t bytes) {
  if (emulator::machine->omits(emulator::Step::kExpect)) return;
  emulator::machine->arrive_at(barrier, bytes, "arrive_and_expect");
}

void wait_for_phase(uint64_t* barrier, uint32_t parity) {
  if (emulator::machine->omits(emulator::Step::kPhaseWait)) return;
  emulator::machine->wait_for_phase(barrier, parity);
}

void copy_box(void* to, const TensorMap* map, uint32_t row, uint32_t column, uint64_t* barrier) {
  emulator::machine->copy_box(to, map, row, column, barrier);
}

void copy_box(void* to, const TensorMap* map, uint32_t row, uint32_t column, uint64_t* barrier,
              uint64_t policy) {
  if (policy != emulator::kEvictFirst) {
    emulator::machine->fail("copy_box with a policy that evict_first_policy() did not make");
  }
  copy_box(to, map, row, column, barrier);
}

int32_t dot4_s8_s8(uint32_t a, uint32_t b, int32_t sum) {
  int32_t product = 0;
  for (unsigned i = 0; i < 32; i += 8) {
    product += static_cast<int8_t>(a >> i) * static_cast<int8_t>(b >> i);
  }
  return static_cast<int32_t>(static_cast<uint32_t>(sum) + static_cast<uint32_t>(product));
}

}  // namespace blindfuse
