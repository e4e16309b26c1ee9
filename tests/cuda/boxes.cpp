// Barriers with phases, and boxes that the tensor memory accelerator copies (machine_state.h).
#include <algorithm>
#include <utility>

#include "tests/cuda/machine_state.h"
#include "tests/cuda/tensor_maps.h"

namespace blindfuse::emulator {
namespace {

constexpr uint32_t kCountMax = (1 << 20) - 1;  // of arrivals, and of bytes

}  // namespace

void Machine::init_barrier(const uint64_t* at, uint32_t arrivals) {
  shared_offset(at, "init_barrier", sizeof(*at), sizeof(*at));
  if (arrivals == 0 || arrivals > kCountMax) {
    fail(Fault::kMisuse, "init_barrier of " + std::to_string(arrivals) + " arrivals");
  }
  if (shadow_) shadow_->access(running_, Kind::kWrite, at, sizeof(*at));
  if (std::ranges::find(barriers_, at, &PhaseBarrier::at) != barriers_.end() ||
      barriers_.size() == kBarriersMax) {
    fail(Fault::kMisuse, "init_barrier where a barrier is, or of too many");
  }
  barriers_.push_back({at, arrivals, arrivals, running_, false, 0, 0, {}, {}});
}

// PTX ISA, "fence.mbarrier_init": orders what was initialized before what comes after it in other
// proxies and, with a barrier, in other threads.
void Machine::publish_barriers() {
  for (PhaseBarrier& barrier : barriers_) {
    if (barrier.initializer == running_) barrier.is_published = true;
  }
}

// Any use of a barrier is an atomic access to it, so that it races with its initialization.
PhaseBarrier& Machine::use_barrier(const uint64_t* at, const char* what, bool by_accelerator) {
  shared_offset(at, what, sizeof(*at), sizeof(*at));
  if (shadow_) shadow_->access(running_, Kind::kAtomic, at, sizeof(*at));
  const auto barrier = std::ranges::find(barriers_, at, &PhaseBarrier::at);
  if (barrier == barriers_.end()) fail(Fault::kMisuse, std::string(what) + " where no barrier is");
  if (!barrier->is_published && (by_accelerator || barrier->initializer != running_)) {
    fail(Fault::kUnpublished,
         std::string(what) + " at a barrier that publish_barriers() did not publish");
  }
  return *barrier;
}

void Machine::arrive(const uint64_t* at, uint32_t bytes, const char* what) {
  PhaseBarrier& barrier = use_barrier(at, what, false);
  if (barrier.pending == 0) {
    fail(Fault::kMisuse, std::string(what) + " where all have arrived in this phase");
  }
  if (barrier.bytes + bytes > kCountMax) {
    fail(Fault::kMisuse, std::string(what) + " of more than 2^20 - 1 bytes");
  }
  if (order_) merge(barrier.gathered, order_->release(running_));
  barrier.bytes += bytes;
  --barrier.pending;
  complete(static_cast<size_t>(&barrier - barriers_.data()));
}

void Machine::complete(size_t number) {
  PhaseBarrier& barrier = barriers_[number];
  if (barrier.pending != 0 || barrier.bytes != 0) return;
  ++barrier.phase;
  barrier.pending = barrier.arrivals;
  merge(barrier.known, std::exchange(barrier.gathered, {}));
  for (Thread& thread : threads_) {
    if (thread.state == Thread::State::kWaiting && thread.what == Together::kPhase &&
        thread.barrier == number) {
      thread.state = Thread::State::kReady;
    }
  }
}

// PTX ISA, "mbarrier.try_wait": true once the phase of this parity is complete.
void Machine::wait_for_phase(const uint64_t* at, uint32_t parity, const Site& site) {
  if (parity > 1) fail(Fault::kMisuse, "wait_for_phase of parity " + std::to_string(parity));
  const PhaseBarrier& barrier = use_barrier(at, "wait_for_phase", false);
  mine().barrier = static_cast<size_t>(&barrier - barriers_.data());
  while (barrier.phase % 2 == parity) wait(Together::kPhase, site);
  if (order_) order_->acquire(running_, barrier.known);
}

// PTX ISA, "cp.async.bulk.tensor": the box is read and written at any time until its bytes have
// come to the barrier. "Swizzling modes": chunks of 16 bytes in rows of 128, by bits 7 .. 9 of the
// address. "Out of bounds access": zeros.
void Machine::copy_box(uint8_t* to, const void* map, int32_t row, int32_t column,
                       const uint64_t* at) {
  const auto tiled = read_map(map);
  if (!tiled) fail(Fault::kMisuse, "copy_box with a map that cuTensorMapEncodeTiled did not make");
  const TensorShape& shape = tiled->shape;
  const bool is_swizzled = shape.swizzle == BoxSwizzle::k128;
  const size_t first = shared_offset(to, "copy_box", shape.box_bytes(), is_swizzled ? 1024 : 128);
  const PhaseBarrier& barrier = use_barrier(at, "copy_box", true);
  Box box{static_cast<size_t>(&barrier - barriers_.data()), {}};
  const auto rows = static_cast<int64_t>(shape.sizes[0]);
  for (int64_t c = 0; c < shape.box[1]; ++c) {
    const int64_t of = column + c;
    const bool is_inside = of >= 0 && of < static_cast<int64_t>(shape.sizes[1]);
    for (uint32_t byte = 0; byte < shape.box[0]; byte += kCopyBytes) {
      size_t place = first + static_cast<size_t>(c) * shape.box[0] + byte;
      if (is_swizzled) place ^= (place >> 7 & 7) << 4;
      const int64_t from = int64_t{row} + byte;
      const int64_t begin = std::clamp<int64_t>(from, 0, rows);
      const int64_t end = std::clamp<int64_t>(from + kCopyBytes, 0, rows);
      Copy piece{shared() + place, nullptr, 0, 0, 0};
      if (is_inside && begin < end) {
        piece.from = tiled->address + of * static_cast<int64_t>(shape.pitch) + begin;
        piece.zeros = static_cast<uint32_t>(begin - from);
        piece.bytes = static_cast<uint32_t>(end - begin);
      }
      box.pieces.push_back(piece);
    }
  }
  for (const PhaseBarrier& other : barriers_) {
    const auto offset = reinterpret_cast<const uint8_t*>(other.at) - (shared() + first);
    if (offset >= 0 && offset < static_cast<ptrdiff_t>(shape.box_bytes())) {
      fail(Fault::kMisuse, "copy_box to where a barrier is");
    }
  }
  if (order_) order_->acquire(agent_of(box.barrier), order_->release(running_));
  for (const Copy& piece : box.pieces) begin(piece, agent_of(box.barrier));
  boxes_.push_back(std::move(box));
}

// As late as can be: when no thread goes on without it.
bool Machine::land_next() {
  if (boxes_.empty()) return false;
  const Box box = std::move(boxes_.front());
  boxes_.pop_front();
  const auto bytes = static_cast<int64_t>(box.pieces.size() * kCopyBytes);
  if (std::ranges::all_of(threads_,
                          [](const Thread& t) { return t.state == Thread::State::kEnded; })) {
    throw KernelFault(Fault::kCopyInFlight, "a block ended with a box on its way");
  }
  if (barriers_[box.barrier].bytes < bytes) {
    throw KernelFault(Fault::kMisuse, "a box brings " + std::to_string(bytes) +
                                          " bytes to a barrier that expects " +
                                          std::to_string(barriers_[box.barrier].bytes));
  }
  for (const Copy& piece : box.pieces) perform(piece, agent_of(box.barrier));
  if (order_) merge(barriers_[box.barrier].gathered, order_->release(agent_of(box.barrier)));
  barriers_[box.barrier].bytes -= bytes;
  complete(box.barrier);
  return true;
}

}  // namespace blindfuse::emulator
