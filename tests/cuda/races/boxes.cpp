// Barriers with phases, and boxes that the tensor memory accelerator copies (kernel_run.h).
#include <algorithm>
#include <cstring>
#include <utility>

#include "tests/cuda/races/kernel_run.h"
#include "tests/cuda/tensor_maps.h"

namespace blindfuse::races {

void Run::init_barrier(const uint64_t* at, uint32_t arrivals) {
  touch(Kind::kWrite, at, sizeof(*at));
  if (std::ranges::find(barriers_, at, &Barrier::at) != barriers_.end() ||
      barriers_.size() == kBarriersMax) {
    return add(Fault::kHang, "a barrier is initialized twice, or there are too many");
  }
  barriers_.push_back({at, arrivals, arrivals, block_->thread(), false, 0, 0, {}, {}});
}

// PTX ISA, "fence.mbarrier_init": orders what was initialized before what comes after it in other
// proxies and, with a barrier, in other threads.
void Run::publish_barriers() {
  for (Barrier& barrier : barriers_) {
    if (barrier.initializer == block_->thread()) barrier.is_published = true;
  }
}

// Any use of a barrier is an atomic access to it, so that it races with its initialization.
Barrier* Run::use_barrier(const uint64_t* at, bool by_accelerator) {
  touch(Kind::kAtomic, at, sizeof(*at));
  const auto barrier = std::ranges::find(barriers_, at, &Barrier::at);
  if (barrier == barriers_.end()) {
    add(Fault::kHang, "a barrier is used that nobody initialized");
    return nullptr;
  }
  if (!barrier->is_published && (by_accelerator || barrier->initializer != block_->thread())) {
    add(Fault::kUnpublished, "thread " + std::to_string(block_->thread()) +
                                 " uses a barrier whose initialization was not published");
  }
  return &*barrier;
}

void Run::arrive(const uint64_t* at, uint32_t bytes) {
  Barrier* const barrier = use_barrier(at, false);
  if (barrier == nullptr) return;
  if (barrier->pending == 0) {
    return add(Fault::kHang, "thread " + std::to_string(block_->thread()) +
                                 " arrives at a barrier where all have arrived in this phase");
  }
  merge(barrier->gathered, order_->release(block_->thread()));
  barrier->bytes += bytes;
  --barrier->pending;
  complete(*barrier);
}

void Run::complete(Barrier& barrier) {
  if (barrier.pending != 0 || barrier.bytes != 0) return;
  ++barrier.phase;
  barrier.pending = barrier.arrivals;
  merge(barrier.known, std::exchange(barrier.gathered, {}));
  block_->wake(barrier.at);
}

// PTX ISA, "mbarrier.try_wait": true once the phase of this parity is complete.
void Run::wait_for_phase(const uint64_t* at, uint32_t parity, const Site& site) {
  const Barrier* const barrier = use_barrier(at, false);
  if (barrier == nullptr) return;
  while (barrier->phase % 2 == parity) {
    wait(Together::kPhase, 0, site, const_cast<uint64_t*>(at));
  }
  order_->acquire(block_->thread(), barrier->known);
}

// PTX ISA, "cp.async.bulk.tensor": the box is read and written at any time until its bytes have
// come to the barrier.
void Run::copy_box(uint8_t* to, const void* map, uint32_t row, uint32_t column,
                   const uint64_t* at) {
  const Barrier* const barrier = use_barrier(at, true);
  if (barrier == nullptr) return;
  const emulator::TiledMap tiled = emulator::read_map(map);
  const TensorShape& shape = tiled.shape;
  Box box{static_cast<size_t>(barrier - barriers_.data()), {}};
  for (uint32_t c = 0; c < shape.box[1]; ++c) {
    for (uint32_t byte = 0; byte < shape.box[0]; byte += 16) {
      const bool is_inside =
          uint64_t{column} + c < shape.sizes[1] && uint64_t{row} + byte + 16 <= shape.sizes[0];
      size_t place = static_cast<size_t>(to - shared()) + size_t{c} * shape.box[0] + byte;
      if (shape.swizzle == BoxSwizzle::k128) place ^= (place >> 7 & 7) << 4;
      box.pieces.push_back(
          {shared() + place, is_inside
                                 ? tiled.address + (uint64_t{column} + c) * shape.pitch + row + byte
                                 : nullptr});
    }
  }
  const uint32_t agent = agent_of(box.barrier);
  order_->acquire(agent, order_->release(block_->thread()));
  for (const Copy& piece : box.pieces) {
    if (piece.from != nullptr) shadow_.begin_copy(agent, Kind::kRead, piece.from, 16);
    shadow_.begin_copy(agent, Kind::kWrite, piece.to, 16);
  }
  boxes_.push_back(std::move(box));
}

// As late as can be: when no thread goes on without it.
bool Run::land_next() {
  if (boxes_.empty()) return false;
  const Box box = std::move(boxes_.front());
  boxes_.pop_front();
  const uint32_t agent = agent_of(box.barrier);
  for (const Copy& piece : box.pieces) {
    if (piece.from != nullptr) {
      std::memcpy(piece.to, piece.from, 16);
      shadow_.end_copy(agent, Kind::kRead, piece.from, 16);
    } else {
      std::memset(piece.to, 0, 16);
    }
    shadow_.end_copy(agent, Kind::kWrite, piece.to, 16);
  }
  Barrier& barrier = barriers_[box.barrier];
  merge(barrier.gathered, order_->release(agent));
  barrier.bytes -= static_cast<int64_t>(box.pieces.size() * 16);
  if (barrier.bytes < 0) add(Fault::kHang, "a box brings bytes that its barrier does not expect");
  complete(barrier);
  return true;
}

}  // namespace blindfuse::races
