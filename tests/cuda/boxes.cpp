// Barriers with phases, tensor maps, and boxes that the tensor memory accelerator copies
// (machine_state.h, tensor_maps.h).
#include <algorithm>
#include <cstring>
#include <utility>

#include "tests/cuda/machine_state.h"
#include "tests/cuda/tensor_maps.h"

namespace blindfuse::emulator {
namespace {

constexpr uint32_t kCountMax = (1 << 20) - 1;  // of arrivals, and of bytes

constexpr uint64_t kMark = 0x7e05'0b0e'4d41'5001;
constexpr int kDataTypes = 16;
constexpr int kSwizzle128 = 3;  // CU_TENSOR_MAP_SWIZZLE_128B

struct Stored {
  uint64_t mark;
  TiledMap map;
};
static_assert(sizeof(Stored) <= kTensorMapBytes);

bool is_aligned(const void* address, size_t bytes) {
  return reinterpret_cast<uintptr_t>(address) % bytes == 0;
}

// In the order of cuda.h.
std::string why_refused(const void* map, const TensorMapArguments& a) {
  if (!is_aligned(map, kTensorMapAlignment)) return "tensorMap is not aligned to 64 bytes";
  if (a.data_type < 0 || a.data_type >= kDataTypes) return "tensorDataType is none of the types";
  if (a.rank == 0 || a.rank > kTensorRankMax) return "tensorRank is not from 1 to 5";
  if (!is_aligned(a.address, 16)) return "globalAddress is not aligned to 16 bytes";
  for (uint32_t i = 0; i < a.rank; ++i) {
    if (a.sizes[i] == 0 || a.sizes[i] > uint64_t{1} << 32) return "globalDim is not from 1 to 2^32";
  }
  for (uint32_t i = 0; i + 1 < a.rank; ++i) {
    if (a.strides[i] % 16 != 0) return "globalStrides is not a multiple of 16";
    if (a.strides[i] >= uint64_t{1} << 40) return "globalStrides is not below 2^40";
  }
  for (uint32_t i = 0; i < a.rank; ++i) {
    if (a.box[i] == 0 || a.box[i] > 256) return "boxDim is not from 1 to 256";
  }
  for (uint32_t i = 0; i < a.rank; ++i) {
    if (a.element_strides[i] == 0 || a.element_strides[i] > 8) {
      return "elementStrides is not from 1 to 8";
    }
  }
  if (a.interleave < 0 || a.interleave > 2) return "interleave is none of the layouts";
  if (a.swizzle < 0 || a.swizzle > 6) return "swizzle is none of the patterns";
  if (a.l2_promotion < 0 || a.l2_promotion > 3) return "l2Promotion is none of the sizes";
  if (a.oob_fill < 0 || a.oob_fill > 1) return "oobFill is none of the constants";
  if (a.data_type != 0 || a.rank != 2 || a.interleave != 0) {
    return "not emulated: other than bytes in two dimensions, as they are";
  }
  if (a.strides[0] < a.sizes[0]) return "globalStrides is less than what lies in it";
  if (a.box[0] % 16 != 0) return "boxDim's inner side is not a multiple of 16 bytes";
  if (a.oob_fill != 0) return "oobFill asks for a NaN where elements are no floating-point numbers";
  if (a.swizzle == kSwizzle128 && a.box[0] > 128) {
    return "boxDim's inner side is longer than the swizzle";
  }
  if (a.swizzle != 0 && (a.swizzle != kSwizzle128 || a.box[0] != 128)) {
    return "not emulated: another swizzle than that of rows of 128 bytes";
  }
  if (a.element_strides[1] != 1) return "not emulated: strides of elements";
  return "";
}

}  // namespace

TensorMapArguments arguments_for(const void* bytes, const TensorShape& shape) {
  TensorMapArguments arguments;
  arguments.address = bytes;
  for (uint32_t i = 0; i < 2; ++i) {
    arguments.sizes[i] = shape.sizes[i];
    arguments.box[i] = shape.box[i];
  }
  arguments.strides[0] = shape.pitch;
  arguments.swizzle = shape.swizzle == BoxSwizzle::k128 ? kSwizzle128 : 0;
  return arguments;
}

std::string make_map(void* map, const TensorMapArguments& a) {
  std::string why = why_refused(map, a);
  if (!why.empty()) return why;
  const Stored stored{kMark,
                      {static_cast<const uint8_t*>(a.address),
                       {{a.sizes[0], a.sizes[1]},
                        a.strides[0],
                        {a.box[0], a.box[1]},
                        a.swizzle == 0 ? BoxSwizzle::kNone : BoxSwizzle::k128}}};
  std::memset(map, 0, kTensorMapBytes);
  std::memcpy(map, &stored, sizeof stored);
  return "";
}

std::optional<TiledMap> read_map(const void* map) {
  Stored stored;
  std::memcpy(&stored, map, sizeof stored);
  if (!is_aligned(map, kTensorMapAlignment) || stored.mark != kMark) return std::nullopt;
  return stored.map;
}

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
