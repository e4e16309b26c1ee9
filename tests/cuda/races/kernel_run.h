// A run of a kernel (run.h): what its blocks, warps and threads have on their way.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <memory>
#include <new>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "tests/cuda/races/block.h"
#include "tests/cuda/races/products.h"
#include "tests/cuda/races/run.h"

namespace blindfuse::races {

// Of a block, each with an agent that stands for the copies of boxes that come to it: threads of
// their own (order.h), after those of the block.
inline constexpr uint32_t kBarriersMax = 64;

// Where shared memory begins in its window.
inline constexpr uint32_t kWindowPlace = 1024;

struct Copy {
  uint8_t* to;
  const uint8_t* from;
};

// Registers that a product has to do with.
struct Registers {
  const uint8_t* begin;
  size_t bytes;
  bool are_sums;
  bool were_written;  // with no fence since
  uint32_t in_use;    // by products in flight
};

struct ThreadState {
  std::vector<Copy> copies;              // not committed
  std::deque<std::vector<Copy>> groups;  // committed, the earliest first
  std::vector<Registers> registers;
};

struct WarpState {
  std::vector<GroupProduct> products;               // not committed
  std::deque<std::vector<GroupProduct>> committed;  // groups, the earliest first
};

// A barrier with phases, in shared memory.
struct Barrier {
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

// A box of a matrix on its way: pieces of 16 bytes, from nowhere where it is zero.
struct Box {
  size_t barrier;
  std::vector<Copy> pieces;
};

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
class Run {
 public:
  Run(const Options& options, std::span<const Range> global, dim3 block, size_t shared_bytes,
      void* context)
      : options_(options),
        shared_bytes_(shared_bytes),
        context_(context),
        shared_(static_cast<uint8_t*>(::operator new(shared_bytes + 16, kAlignment))),
        shadow_({shared_.get(), shared_bytes}, global, block.x * block.y * block.z,
                [this](Fault fault, std::string text) { add(fault, std::move(text)); }),
        thread_count_(block.x * block.y * block.z) {
    blockDim = block;
  }

  void run_block(uint32_t number, void (*thread)(void*));
  bool is_over() const { return options_.ends_with_first_race && !report_.races.empty(); }

  void touch(Kind kind, const void* place, size_t bytes);
  // Notes the call, and says whether it counts.
  bool calls(Step step, const Site& site);
  void copy(uint8_t* to, const uint8_t* from);
  void commit_copies();
  void wait_copies(uint32_t pending);
  void pin(const uint8_t* begin, size_t bytes, bool are_sums);
  void wgmma_fence();
  void wgmma_commit();
  // Barriers with phases, and boxes: boxes.cpp.
  void init_barrier(const uint64_t* at, uint32_t arrivals);
  void publish_barriers();
  void arrive(const uint64_t* at, uint32_t bytes);
  void wait_for_phase(const uint64_t* at, uint32_t parity, const Site& site);
  void copy_box(uint8_t* to, const void* map, uint32_t row, uint32_t column, const uint64_t* at);

  void add(Fault fault, std::string text);
  void wait(Together what, uint32_t mask, const Site& site, void* argument) {
    block_->wait(what, mask, site, argument);
  }
  void publish() { order_->fence_proxies(block_->thread()); }
  uint8_t* shared() const { return shared_.get(); }
  const Options& options() const { return options_; }
  Report take_report() { return std::move(report_); }

 private:
  static constexpr std::align_val_t kAlignment{1024};
  struct Free {
    void operator()(uint8_t* memory) const { ::operator delete(memory, kAlignment); }
  };

  ThreadState& mine() { return threads_[block_->thread()]; }
  void resume(uint32_t thread);
  void end(uint32_t thread);
  void act(Together what, uint32_t warp, uint32_t mask, void* const (&arguments)[32]);
  void start_product(uint32_t warp, void* const (&arguments)[32]);
  void end_products(uint32_t warp, uint32_t pending);
  void end_group(uint32_t warp, const std::vector<GroupProduct>& group);
  // The barrier at a place, where the running thread may know of it; else null, with a report.
  Barrier* use_barrier(const uint64_t* at, bool by_accelerator);
  uint32_t agent_of(size_t barrier) const { return thread_count_ + static_cast<uint32_t>(barrier); }
  void complete(Barrier& barrier);
  // Brings the box that was asked for first; whether there was one.
  bool land_next();
  bool is_program_memory(const void* place) const;

  const Options& options_;
  size_t shared_bytes_;
  void* context_;
  std::unique_ptr<uint8_t, Free> shared_;
  Shadow shadow_;
  uint32_t thread_count_;
  Report report_;
  std::array<uint32_t, 8> found_{};  // of each kind of fault
  // The running block's.
  std::optional<Order> order_;
  std::optional<Block> block_;
  std::vector<ThreadState> threads_;
  std::vector<WarpState> warps_;
  std::vector<Barrier> barriers_;
  std::deque<Box> boxes_;
  // Of calls that were noted: many threads make the same.
  struct Known {
    const char* file;
    unsigned line;
    Step step;
    uint64_t* count;
    bool is_omitted;
  };
  std::vector<Known> known_;
};

// The one that is under way, and whether the kernel's own code runs. What the detector does
// meanwhile may also be compiled with calls of the sanitizer: templates of the standard library,
// which the kernels' files share.
inline Run* current = nullptr;
inline bool is_in_kernel = false;

}  // namespace blindfuse::races
