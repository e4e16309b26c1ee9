#include "tests/cuda/races/run.h"

#include <algorithm>
#include <cstring>
#include <iterator>
#include <string_view>
#include <utility>

#include "tests/cuda/races/kernel_run.h"

// Where the program's own constants and variables begin and end, as the linker says.
extern "C" char __executable_start;
extern "C" char _end;

namespace blindfuse::races {

void Run::add(Fault fault, std::string text) {
  if (++found_[static_cast<size_t>(fault)] <= 4) report_.races.push_back({fault, std::move(text)});
}

void Run::run_block(uint32_t number, void (*thread)(void*)) {
  std::memset(shared_.get(), 0xcd, shared_bytes_);
  order_.emplace(thread_count_ + kBarriersMax);
  barriers_.clear();
  boxes_.clear();
  threads_.assign(thread_count_, {});
  warps_.assign(thread_count_ / 32, {});
  shadow_.begin_block(number, *order_);
  block_.emplace(
      thread_count_,
      Block::Calls{[this, thread] {
                     is_in_kernel = true;
                     thread(context_);
                     is_in_kernel = false;
                   },
                   [this](uint32_t t) { resume(t); }, [this](uint32_t t) { end(t); },
                   [this](Together what, uint32_t warp, uint32_t mask,
                          void* const(&arguments)[32]) { act(what, warp, mask, arguments); },
                   [this] { return is_over(); }, [this] { return land_next(); }});
  if (std::string trouble = block_->run(); !trouble.empty()) add(Fault::kHang, trouble);
  if (!boxes_.empty() && !is_over()) {
    add(Fault::kCopyInFlight, "the block ends before boxes that it asked for have come");
  }
}

void Run::resume(uint32_t thread) {
  threadIdx = {thread % blockDim.x, thread / blockDim.x % blockDim.y,
               thread / blockDim.x / blockDim.y};
}

// The block's shared memory goes to another one when all threads have ended.
void Run::end(uint32_t thread) {
  const auto has_copies = [](const std::vector<Copy>& group) { return !group.empty(); };
  const ThreadState& state = threads_[thread];
  if (has_copies(state.copies) || std::ranges::any_of(state.groups, has_copies)) {
    add(Fault::kCopyInFlight,
        "thread " + std::to_string(thread) + " ends before copies that it started");
  }
  const WarpState& warp = warps_[thread / 32];
  const auto has_products = [](const std::vector<GroupProduct>& group) { return !group.empty(); };
  if (!warp.products.empty() || std::ranges::any_of(warp.committed, has_products)) {
    add(Fault::kProductInFlight,
        "thread " + std::to_string(thread) + " ends before products that it started");
  }
}

bool Run::is_program_memory(const void* place) const {
  const auto* at = static_cast<const char*>(place);
  if (at >= &__executable_start && at < &_end) return true;
  // The arguments, on the stack of the caller of run().
  constexpr ptrdiff_t kStackBytes = 8 << 20;
  const ptrdiff_t above = at - static_cast<const char*>(context_);
  return above > -4096 && above < kStackBytes;
}

void Run::touch(Kind kind, const void* place, size_t bytes) {
  if (shadow_.is_watched(place)) return shadow_.access(block_->thread(), kind, place, bytes);
  if (block_->is_on_stack(place)) {
    const auto* at = static_cast<const uint8_t*>(place);
    for (Registers& r : mine().registers) {
      if (at >= r.begin + r.bytes || at + bytes <= r.begin) continue;
      if (r.in_use > 0 && (r.are_sums || kind != Kind::kRead)) {
        add(Fault::kRegisters, "thread " + std::to_string(block_->thread()) + " touches a " +
                                   "product's registers before it waited for it");
      }
      if (kind != Kind::kRead) r.were_written = true;
    }
  } else if (!is_program_memory(place)) {
    add(Fault::kUnwatched, "thread " + std::to_string(block_->thread()) +
                               " touches memory that the kernel was not given");
  }
}

bool Run::calls(Step step, const Site& site) {
  for (const Known& known : known_) {
    if (known.line == site.line && known.step == step && known.file == site.file) {
      ++*known.count;
      return !known.is_omitted;
    }
  }
  const std::string_view path = site.file;
  const std::string_view function = site.function;
  const Call call{std::string(path.substr(path.rfind('/') + 1)), site.line,
                  std::string(function.substr(0, function.find('<'))), step};
  uint64_t* const count = &report_.calls[call];
  known_.push_back({site.file, site.line, step, count, call == options_.omitted});
  ++*count;
  return !known_.back().is_omitted;
}

// PTX ISA, "Data Movement and Conversion Instructions: Asynchronous copy": cp.async copies at any
// time after it is issued. Only cp.async.wait_group (or wait_all) says that it is done, and that to
// the thread that issued it; what other threads may see needs a barrier after it, as any write.
// Between copies there is no order.
void Run::copy(uint8_t* to, const uint8_t* from) {
  if ((reinterpret_cast<uintptr_t>(to) | reinterpret_cast<uintptr_t>(from)) % 16 != 0) {
    add(Fault::kUnwatched, "a copy from or to a place that is no multiple of 16");
  }
  shadow_.begin_copy(block_->thread(), Kind::kRead, from, 16);
  shadow_.begin_copy(block_->thread(), Kind::kWrite, to, 16);
  mine().copies.push_back({to, from});
}

void Run::commit_copies() { mine().groups.push_back(std::exchange(mine().copies, {})); }

// As late as can be: what does not wait misses it.
void Run::wait_copies(uint32_t pending) {
  std::deque<std::vector<Copy>>& groups = mine().groups;
  for (; groups.size() > pending; groups.pop_front()) {
    for (const Copy& copy : groups.front()) {
      std::memcpy(copy.to, copy.from, 16);
      shadow_.end_copy(block_->thread(), Kind::kRead, copy.from, 16);
      shadow_.end_copy(block_->thread(), Kind::kWrite, copy.to, 16);
    }
  }
}

// PTX ISA, wgmma.fence: needed before the first wgmma.mma_async and whenever registers, of sums or
// of a, were written. wgmma.wait_group: before it, touching either is undefined. Reading those of a
// is let through: the next product of the same a reads them, too.
void Run::pin(const uint8_t* begin, size_t bytes, bool are_sums) {
  const auto is_known = [&](const Registers& r) { return r.begin == begin && r.bytes == bytes; };
  if (std::ranges::any_of(mine().registers, is_known)) return;
  mine().registers.push_back({begin, bytes, are_sums, true, 0});
}

void Run::wgmma_fence() {
  for (Registers& r : mine().registers) r.were_written = false;
}

void Run::start_product(uint32_t warp, void* const (&arguments)[32]) {
  GroupProduct product;
  const auto& first = *static_cast<const WgmmaStart*>(arguments[0]);
  product.columns = first.columns;
  product.warp = warp % 4;
  product.operand = described_rows(first.descriptor, first.columns, kWindowPlace);
  if (first.a == nullptr) {
    product.matrix = described_rows(first.a_descriptor, kGroupRows, kWindowPlace);
  }
  if (product.operand.empty() || (first.a == nullptr && product.matrix.empty())) {
    add(Fault::kUnwatched, "a descriptor of another kind");
  }
  for (uint32_t lane = 0; lane < 32; ++lane) {
    const auto& start = *static_cast<const WgmmaStart*>(arguments[lane]);
    product.sums[lane] = start.sums;
    if (start.a != nullptr) std::ranges::copy(*start.a, product.a[lane].begin());
    if (start.descriptor != first.descriptor || start.a_descriptor != first.a_descriptor) {
      add(Fault::kHang, "lanes of a warp start different products");
    }
    bool are_ready = false;
    for (Registers& r : threads_[32 * warp + lane].registers) {
      const auto* sums = reinterpret_cast<const uint8_t*>(start.sums);
      if (r.are_sums && r.begin != sums) continue;
      are_ready |= r.are_sums;
      if (r.were_written) {
        add(Fault::kRegisters, "thread " + std::to_string(32 * warp + lane) +
                                   " starts a product of registers with no fence since they were "
                                   "written");
      }
      ++r.in_use;
    }
    if (!are_ready) add(Fault::kRegisters, "a product onto sums that were not pinned");
  }
  product.for_places([&](uint32_t place) {
    shadow_.begin_product(32 * warp, shared_.get() + place, kOperandBytes);
  });
  warps_[warp].products.push_back(std::move(product));
}

// For its warp: all lanes call it together.
void Run::wgmma_commit() {
  if (block_->thread() % 32 != 0) return;
  WarpState& warp = warps_[block_->thread() / 32];
  warp.committed.push_back(std::exchange(warp.products, {}));
}

// All groups that are committed, except the last `pending` ones.
void Run::end_products(uint32_t warp, uint32_t pending) {
  for (; warps_[warp].committed.size() > pending; warps_[warp].committed.pop_front()) {
    end_group(warp, warps_[warp].committed.front());
  }
}

void Run::end_group(uint32_t warp, const std::vector<GroupProduct>& group) {
  for (const GroupProduct& product : group) {
    if (options_.computes_products) product.compute(shared_.get());
    product.for_places([&](uint32_t place) {
      shadow_.end_product(32 * warp, shared_.get() + place, kOperandBytes);
    });
    for (uint32_t lane = 0; lane < 32; ++lane) {
      for (Registers& r : threads_[32 * warp + lane].registers) {
        const auto* sums = reinterpret_cast<const uint8_t*>(product.sums[lane]);
        if ((!r.are_sums || r.begin == sums) && r.in_use > 0) --r.in_use;
      }
    }
  }
}

void Run::act(Together what, uint32_t warp, uint32_t mask, void* const (&arguments)[32]) {
  switch (what) {
    case Together::kBlockBarrier:
      return order_->block_barrier();
    case Together::kWarpBarrier:
      return order_->warp_barrier(warp, mask);
    case Together::kShuffle: {
      uint32_t values[32] = {};
      for (uint32_t lane = 0; lane < 32; ++lane) {
        if (arguments[lane] != nullptr) {
          values[lane] = static_cast<const Shuffle*>(arguments[lane])->value;
        }
      }
      for (void* const argument : arguments) {
        if (argument == nullptr) continue;
        auto& shuffle = *static_cast<Shuffle*>(argument);
        if ((mask >> shuffle.source % 32 & 1) == 0) {
          add(Fault::kHang, "a shuffle from a lane that its mask does not have");
        }
        shuffle.value = values[shuffle.source % 32];
      }
      return;
    }
    case Together::kReduceAdd: {
      uint32_t sum = 0;
      for (void* const argument : arguments) {
        if (argument != nullptr) sum += *static_cast<const uint32_t*>(argument);
      }
      for (void* const argument : arguments) {
        if (argument != nullptr) *static_cast<uint32_t*>(argument) = sum;
      }
      return;
    }
    case Together::kMultiply: {
      const auto& first = *static_cast<const Multiply*>(arguments[0]);
      for (uint32_t i = 0; i < first.count; ++i) {
        WarpProduct product;
        for (uint32_t lane = 0; lane < 32; ++lane) {
          const auto& of_lane = *static_cast<const Multiply*>(arguments[lane]);
          product.sums[lane] = of_lane.sums[i];
          product.a[lane] = *of_lane.a;
          product.b[lane] = of_lane.b[i];
        }
        product.compute();
      }
      return;
    }
    case Together::kWgmmaStart:
      return start_product(warp, arguments);
    case Together::kWgmmaWait:
      return end_products(warp, *static_cast<const uint32_t*>(arguments[0]));
    case Together::kPhase:
    case Together::kNothing:
      return;
  }
}

Report run_grid(const Options& options, std::span<const Range> global, dim3 grid, dim3 block,
                size_t shared_bytes, void (*thread)(void*), void* context) {
  Run run(options, global, block, shared_bytes, context);
  gridDim = grid;
  uint32_t number = 0;
  for (blockIdx.z = 0; blockIdx.z < grid.z; ++blockIdx.z) {
    for (blockIdx.y = 0; blockIdx.y < grid.y; ++blockIdx.y) {
      for (blockIdx.x = 0; blockIdx.x < grid.x; ++blockIdx.x) {
        if (run.is_over()) break;
        current = &run;
        run.run_block(number++, thread);
        current = nullptr;
      }
    }
  }
  return run.take_report();
}

bool Report::has(Fault fault) const {
  return std::ranges::any_of(races, [&](const Race& race) { return race.fault == fault; });
}

std::string Report::text() const {
  std::string text;
  for (const Race& race : races) text += name_of(race.fault) + ": " + race.text + '\n';
  return text;
}

std::string name_of(Step step) {
  constexpr const char* kNames[] = {"__syncthreads", "__syncwarp",        "commit_copies",
                                    "wait_copies",   "publish_shared",    "wgmma_fence",
                                    "wgmma_commit",  "wgmma_wait",        "publish_barriers",
                                    "arrive",        "arrive_and_expect", "wait_for_phase"};
  return kNames[static_cast<size_t>(step)];
}

}  // namespace blindfuse::races
