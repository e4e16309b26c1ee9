#include "tests/cuda/machine.h"

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <string_view>
#include <utility>

#include "tests/cuda/machine_state.h"

// Where the program's own constants and variables begin and end, as the linker says.
extern "C" char __executable_start;
extern "C" char _end;

namespace blindfuse::emulator {
namespace {

constexpr uint32_t kMaxThreads = 1024;
constexpr uint32_t kRegistersOfBlock = 65536;
// CUDA C++ Programming Guide, "Compute capabilities": the most blocks in each dimension.
constexpr uint32_t kGridMax[] = {0x7fffffff, 0xffff, 0xffff};

bool is_same(const Site& a, const Site& b) {
  return a.line == b.line && (a.file == b.file || std::string_view(a.file) == b.file);
}

std::string text_of(const Site& site) {
  const std::string_view file = site.file;
  return std::string(site.function) + " (" + std::string(file.substr(file.rfind('/') + 1)) + ':' +
         std::to_string(site.line) + ')';
}

std::string text_of(const uint3& index) {
  return '(' + std::to_string(index.x) + ", " + std::to_string(index.y) + ", " +
         std::to_string(index.z) + ')';
}

uint3 index_of(uint32_t thread) {
  return {thread % blockDim.x, thread / blockDim.x % blockDim.y, thread / blockDim.x / blockDim.y};
}

void enter_thread() { machine->run_thread(); }

}  // namespace

std::string name_of(Fault fault) {
  constexpr const char* kNames[] = {"no order",          "two blocks", "copy in flight",
                                    "product in flight", "no fence",   "registers",
                                    "foreign memory",    "hang",       "misuse"};
  return kNames[static_cast<size_t>(fault)];
}

std::string name_of(Step step) {
  constexpr const char* kNames[] = {"__syncthreads", "__syncwarp",        "commit_copies",
                                    "wait_copies",   "publish_shared",    "wgmma_fence",
                                    "wgmma_commit",  "wgmma_wait",        "publish_barriers",
                                    "arrive",        "arrive_and_expect", "wait_for_phase"};
  return kNames[static_cast<size_t>(step)];
}

// Extra passes are counted when all eight have come, or never will.
void BankConflicts::add(uint64_t lanes, uint64_t n, size_t offset) {
  auto& offsets = together_[{lanes, n}];
  if (std::ranges::count(offsets, offset) == 0) offsets.push_back(offset);
}

uint64_t BankConflicts::count() const {
  uint64_t extra = 0;
  for (const auto& [which, offsets] : together_) {
    uint64_t passes[8] = {};  // of each bank, or of banks that are touched together
    for (const size_t offset : offsets) ++passes[offset / kCopyBytes % 8];
    extra += std::ranges::max(passes) - 1;
  }
  return extra;
}

Machine::Machine(const Options& options, dim3 block, size_t shared_bytes, void (*thread)(void*),
                 void* context)
    : options_(options),
      shared_bytes_(shared_bytes),
      thread_(thread),
      context_(context),
      // Not a byte more than was asked for, so that AddressSanitizer sees an access beyond it.
      shared_(static_cast<uint8_t*>(::operator new(shared_bytes, kAlignment))),
      threads_(block.x * block.y * block.z),
      warps_(threads_.size() / 32),
      groups_((warps_.size() + 3) / 4) {
  if (options.watches) {
    shadow_.emplace(Range{shared_.get(), shared_bytes}, all_memory(),
                    static_cast<uint32_t>(threads_.size()),
                    [this](Fault fault, const std::string& text) { fail(fault, text); });
  }
}

void Machine::run_block(uint32_t number) {
  std::memset(shared_.get(), 0xcd, shared_bytes_);
  barriers_.clear();
  boxes_.clear();
  free_registers_ = 0;
  at_barrier_ = 0;
  const auto count = static_cast<uint32_t>(threads_.size());
  if (shadow_) shadow_->begin_block(number, order_.emplace(count, kBarriersMax));
  for (Warp& warp : warps_) warp = {}, warp.registers = kRegistersOfBlock / count / 8 * 8;
  std::ranges::fill(groups_, Group{});
  for (uint32_t t = 0; t < count; ++t) {
    threads_[t] = {.index = index_of(t)};
    prepare_context(threads_[t].context, t, enter_thread);
  }
  do {
    for (bool progress = true; progress;) {
      progress = false;
      for (size_t warp = 0; warp < warps_.size(); ++warp) progress |= run_warp(warp);
    }
  } while (land_next());
  const auto has_ended = [](const Thread& t) { return t.state == Thread::State::kEnded; };
  const std::string where = "block " + text_of(blockIdx);
  if (!std::ranges::all_of(threads_, has_ended)) {
    throw KernelFault(Fault::kHang, where + ": " + who_waits());
  }
  for (size_t i = 0; i < warps_.size(); ++i) {
    if (warps_[i].register_changes != warps_[i / 4 * 4].register_changes) {
      throw KernelFault(Fault::kMisuse, where + ": setmaxnreg of some warps of a warpgroup");
    }
    if (warps_[i].products_started != groups_[i / 4].products.size()) {
      throw KernelFault(Fault::kMisuse, where + ": a product of some warps of a warpgroup");
    }
  }
  report_.bank_conflicts += load_conflicts_.count() + copy_conflicts_.count();
  load_conflicts_ = copy_conflicts_ = {};
}

Report Machine::take_report() { return std::move(report_); }

// Until all lanes wait or have ended; whether any ran.
bool Machine::run_warp(size_t warp) {
  bool ran = false;
  for (bool again = true; again;) {
    again = false;
    for (auto t = static_cast<uint32_t>(32 * warp); t < 32 * warp + 32; ++t) {
      if (threads_[t].state != Thread::State::kReady) continue;
      again = ran = true;
      running_ = t;
      threadIdx = threads_[t].index;
      switch_context(host_, threads_[t].context);
      if (!error_.empty()) throw KernelFault(error_kind_, error_);
    }
  }
  return ran;
}

void Machine::run_thread() {
  arrive_from(host_);
  const uint8_t here = 0;
  mine().stack_top = &here;
  is_in_kernel = shadow_.has_value();
  thread_(context_);
  is_in_kernel = false;
  require_nothing_left(running_);
  mine().state = Thread::State::kEnded;
  switch_context(mine().context, host_, true);
  std::abort();  // it does not return
}

// No exception: what the sanitizer calls may not throw.
void Machine::fail(Fault fault, const std::string& text) {
  error_kind_ = fault;
  error_ = "block " + text_of(blockIdx) + ", thread " + text_of(threadIdx) + ": " + text;
  is_in_kernel = false;
  switch_context(mine().context, host_, true);
  std::abort();  // it does not return
}

// The block's shared memory goes to another one when all threads have ended.
void Machine::require_nothing_left(uint32_t thread) {
  if (const size_t count = threads_[thread].copies.size(); count != 0) {
    fail(Fault::kCopyInFlight,
         "ended with " + std::to_string(count) + " copies that it had not waited for");
  }
  const Warp& warp = warps_[thread / 32];
  const auto has_products = [](const std::vector<GroupProduct>& group) { return !group.empty(); };
  if (!warp.products.empty() || std::ranges::any_of(warp.committed, has_products)) {
    fail(Fault::kProductInFlight, "ended with products that it had not waited for");
  }
}

std::string Machine::who_waits() const {
  size_t count = 0;
  const Thread* first = nullptr;
  for (const Thread& thread : threads_) {
    if (thread.state != Thread::State::kWaiting || count++ != 0) continue;
    first = &thread;
  }
  std::string text = std::to_string(count) + " threads wait, the first is " +
                     text_of(first->index) + " in " + text_of(first->site);
  if (first->what == Together::kRegisters) return text + ", for registers";
  if (first->what != Together::kPhase) return text + ", for threads that do not come there";
  const PhaseBarrier& barrier = barriers_[first->barrier];
  return text + ", for phase " + std::to_string(barrier.phase) + " of barrier " +
         std::to_string(first->barrier) + ", where " + std::to_string(barrier.pending) +
         " arrivals and " + std::to_string(barrier.bytes) + " bytes are missing";
}

void Machine::wait(Together what, const Site& site) {
  Thread& self = mine();
  self.state = Thread::State::kWaiting;
  self.what = what;
  self.site = site;
  pause();
}

void Machine::pause() {
  switch_context(mine().context, host_);
  is_in_kernel = false;
}

void Machine::release(size_t warp) {
  warps_[warp].waiting = 0;
  for (size_t t = 32 * warp; t < 32 * warp + 32; ++t) threads_[t].state = Thread::State::kReady;
}

// Notes that the running lane waits, and that all lanes that do wait for the same.
void Machine::come(Together what, void* argument, const Site& site) {
  Warp& warp = warps_[running_ / 32];
  Thread& self = mine();
  if (warp.waiting++ == 0) {
    warp.first = running_;
  } else if (const Thread& first = threads_[warp.first];
             first.what != what || !is_same(first.site, site)) {
    fail(Fault::kHang, "waits in " + text_of(site) + " and lane " +
                           std::to_string(warp.first % 32) + " of its warp in " +
                           text_of(first.site));
  }
  warp.arguments[running_ % 32] = argument;
  self.state = Thread::State::kWaiting;
  self.what = what;
  self.site = site;
}

void Machine::join_warp(Together what, void* argument, const Site& site) {
  come(what, argument, site);
  const uint32_t warp = running_ / 32;
  if (warps_[warp].waiting < 32) return pause();
  act(what, warp);
  release(warp);
}

void Machine::join_block(const Site& site) {
  come(Together::kBlockBarrier, nullptr, site);
  if (++at_barrier_ < threads_.size()) return pause();
  for (const Thread& thread : threads_) {
    if (!is_same(thread.site, site)) {
      fail(Fault::kHang,
           "waits in " + text_of(site) + " and another thread in " + text_of(thread.site));
    }
  }
  at_barrier_ = 0;
  if (order_) order_->block_barrier();
  for (size_t warp = 0; warp < warps_.size(); ++warp) release(warp);
}

bool Machine::is_on_stack(const void* place) const {
  constexpr ptrdiff_t kStackBytes = 128 << 10;
  const ptrdiff_t below = threads_[running_].stack_top - static_cast<const uint8_t*>(place);
  return below > -4096 && below < kStackBytes;
}

bool Machine::is_program_memory(const void* place) const {
  const auto* at = static_cast<const char*>(place);
  if (at >= &__executable_start && at < &_end) return true;
  // The arguments, on the stack of the caller of launch().
  constexpr ptrdiff_t kStackBytes = 8 << 20;
  const ptrdiff_t above = at - static_cast<const char*>(context_);
  return above > -4096 && above < kStackBytes;
}

void Machine::touch(Kind kind, const void* place, size_t bytes) {
  if (is_on_stack(place)) {
    const auto* at = static_cast<const uint8_t*>(place);
    for (Registers& r : mine().registers) {
      if (at >= r.begin + r.bytes || at + bytes <= r.begin) continue;
      if (r.in_use > 0 && (r.are_sums || kind != Kind::kRead)) {
        fail(Fault::kRegisters, "touches a product's registers before it waited for it");
      }
      if (kind != Kind::kRead) r.were_written = true;
    }
  } else if (shadow_->is_watched(place)) {
    shadow_->access(running_, kind, place, bytes);
  } else if (!is_program_memory(place)) {
    fail(Fault::kForeignMemory, "touches memory that the kernel was not given");
  }
}

bool Machine::calls(Step step, const Site& site) {
  if (!options_.watches) return true;
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

size_t Machine::shared_offset(const void* place, const char* what, size_t bytes, size_t alignment) {
  // Of an address below, it wraps around to an offset that is too large as well.
  const size_t offset = reinterpret_cast<uintptr_t>(place) - reinterpret_cast<uintptr_t>(shared());
  const bool is_inside = shared_bytes_ >= bytes && offset <= shared_bytes_ - bytes;
  if (is_inside && offset % alignment == 0) return offset;
  fail(Fault::kMisuse, std::string(what) + " at byte " +
                           std::to_string(static_cast<ptrdiff_t>(offset)) +
                           " of shared memory, which is " +
                           (is_inside ? "not a multiple of " + std::to_string(alignment)
                                      : "outside of the block's " + std::to_string(shared_bytes_)));
}

void Machine::count_load(const void* shared) {
  const size_t offset = shared_offset(shared, "load_shared_16", kCopyBytes, kCopyBytes);
  if (options_.watches) load_conflicts_.add(running_ / 8, mine().loads++, offset);
}

// PTX ISA, "Data Movement and Conversion Instructions: Asynchronous copy": cp.async copies at any
// time after it is issued. Only cp.async.wait_group (or wait_all) says that it is done, and that to
// the thread that issued it; what other threads may see needs a barrier after it, as any write.
// Between copies there is no order.
void Machine::copy(uint8_t* to, const uint8_t* from) {
  const size_t offset = shared_offset(to, "copy_16_async", kCopyBytes, kCopyBytes);
  if (reinterpret_cast<uintptr_t>(from) % kCopyBytes != 0) {
    fail(Fault::kMisuse, "copy_16_async of a global address that is not a multiple of 16");
  }
  if (options_.watches) copy_conflicts_.add(running_ / 8, mine().copies_issued++, offset);
  mine().copies.push_back({to, from, mine().groups_committed});
  begin(mine().copies.back(), running_);
}

void Machine::wait_copies(uint32_t pending) {
  Thread& thread = mine();
  auto copy = thread.copies.begin();
  for (; copy != thread.copies.end() && copy->group + pending < thread.groups_committed; ++copy) {
    perform(*copy, running_);
  }
  thread.copies.erase(thread.copies.begin(), copy);
}

void Machine::begin(const Copy& copy, uint32_t actor) {
  if (!shadow_) return;
  if (copy.bytes != 0) shadow_->begin_copy(actor, Kind::kRead, copy.from, copy.bytes);
  shadow_->begin_copy(actor, Kind::kWrite, copy.to, kCopyBytes);
}

void Machine::perform(const Copy& copy, uint32_t actor) {
  if (copy.bytes != kCopyBytes) std::memset(copy.to, 0, kCopyBytes);
  if (copy.bytes != 0) std::memcpy(copy.to + copy.zeros, copy.from, copy.bytes);
  if (!shadow_) return;
  if (copy.bytes != 0) shadow_->end_copy(actor, Kind::kRead, copy.from, copy.bytes);
  shadow_->end_copy(actor, Kind::kWrite, copy.to, kCopyBytes);
}

// What the lanes of a warp do together, from and to where their operands lie.
void Machine::act(Together what, uint32_t warp) {
  const auto& arguments = warps_[warp].arguments;
  switch (what) {
    case Together::kWarpBarrier:
      if (order_) order_->warp_barrier(warp);
      return;
    case Together::kShuffle: {
      uint32_t values[32];
      for (uint32_t i = 0; i < 32; ++i) values[i] = static_cast<Shuffle*>(arguments[i])->value;
      for (void* const argument : arguments) {
        auto& shuffle = *static_cast<Shuffle*>(argument);
        shuffle.value = values[shuffle.source % 32];
      }
      return;
    }
    case Together::kReduceAdd: {
      uint32_t sum = 0;
      for (void* const argument : arguments) sum += *static_cast<const uint32_t*>(argument);
      for (void* const argument : arguments) *static_cast<uint32_t*>(argument) = sum;
      return;
    }
    case Together::kMultiply: {
      WarpProduct product;
      const uint32_t count = static_cast<const Multiply*>(arguments[0])->count;
      for (uint32_t i = 0; i < count; ++i) {
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
    case Together::kGroupStart:
      return start_product(warp);
    case Together::kGroupWait:
      return end_products(warp, *static_cast<const uint32_t*>(arguments[0]));
    default:
      return;
  }
}

Report run_grid(const Options& options, dim3 grid, dim3 block, size_t shared_bytes,
                void (*thread)(void*), void* context) {
  const uint64_t threads = uint64_t{block.x} * block.y * block.z;
  if (threads == 0 || threads > kMaxThreads || threads % 32 != 0) {
    throw KernelFault(Fault::kMisuse, "a block of " + std::to_string(threads) +
                                          " threads: it must be a multiple of 32, at most 1024");
  }
  const uint32_t sizes[] = {grid.x, grid.y, grid.z};
  for (size_t i = 0; i < 3; ++i) {
    if (sizes[i] == 0 || sizes[i] > kGridMax[i]) {
      throw KernelFault(Fault::kMisuse, "a grid of " + text_of({grid.x, grid.y, grid.z}) +
                                            " blocks: there may be up to " +
                                            text_of({kGridMax[0], kGridMax[1], kGridMax[2]}));
    }
  }
  Machine launched(options, block, shared_bytes, thread, context);
  gridDim = grid;
  blockDim = block;
  const uint64_t count = uint64_t{grid.x} * grid.y * grid.z - (options.omits_last_block ? 1 : 0);
  for (uint64_t i = 0; i < count; ++i) {
    blockIdx = {static_cast<uint32_t>(i % grid.x), static_cast<uint32_t>(i / grid.x % grid.y),
                static_cast<uint32_t>(i / grid.x / grid.y)};
    machine = &launched;
    launched.run_block(static_cast<uint32_t>(i));
  }
  return launched.take_report();
}

}  // namespace blindfuse::emulator
