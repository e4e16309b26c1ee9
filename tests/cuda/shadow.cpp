#include "tests/cuda/shadow.h"

#include <algorithm>
#include <cstdlib>
#include <new>
#include <utility>

namespace blindfuse::emulator {
namespace {

constexpr uint32_t kNobody = ~uint32_t{0};

const char* name_of(Kind kind) {
  return kind == Kind::kRead ? "reads" : kind == Kind::kWrite ? "writes" : "updates";
}

bool agree(Kind a, Kind b) { return a == b && a != Kind::kWrite; }

}  // namespace

Shadow::Shadow(Range shared, std::span<const Range> global, uint32_t thread_count, Fail fail)
    : fail_(std::move(fail)),
      thread_count_(thread_count),
      nodes_(1),
      written_(shared.bytes / 4 + 2) {
  const auto add = [&](const Range& range) {
    // Zeros that take no memory until they are touched.
    auto* const cells = static_cast<Cell*>(std::calloc(range.bytes / 4 + 2, sizeof(Cell)));
    if (cells == nullptr) throw std::bad_alloc();
    areas_.push_back({static_cast<const uint8_t*>(range.begin), range.bytes, areas_.size(),
                      std::unique_ptr<Cell[], FreeCells>(cells)});
  };
  add(shared);
  for (const Range& range : global) add(range);
  found_ = areas_.data();
}

void Shadow::begin_block(uint32_t block, Order& order) {
  block_ = block + 1;
  order_ = &order;
  stamped_phase_ = kNobody;
  std::ranges::fill(written_, Moment{kNobody});
  std::fill_n(areas_[0].cells.get(), written_.size(), Cell{});
}

Shadow::Area* Shadow::find(const void* place) {
  const auto* at = static_cast<const uint8_t*>(place);
  const auto holds = [at](const Area& area) {
    return at >= area.begin && at < area.begin + area.bytes;
  };
  if (holds(*found_)) return found_;
  if (holds(areas_[0])) return found_ = areas_.data();
  const auto next = std::upper_bound(areas_.begin() + 1, areas_.end(), at,
                                     [](const uint8_t* p, const Area& a) { return p < a.begin; });
  if (!holds(*(next - 1))) return nullptr;
  return found_ = &*(next - 1);
}

// f(area, word, mask of bytes) for each word.
template <class F>
void Shadow::for_words(const void* place, size_t bytes, const F& f) {
  Area* const area = find(place);
  const auto* const at = static_cast<const uint8_t*>(place);
  if (area == nullptr || at + bytes > area->begin + area->bytes) {
    return fail_(Fault::kForeignMemory,
                 "an access that begins or ends outside of the kernel's memory");
  }
  const auto first = static_cast<size_t>(at - area->begin);
  for (size_t byte = first; byte < first + bytes;) {
    const size_t end = std::min(first + bytes, byte / 4 * 4 + 4);
    const unsigned mask = ((1u << (end - byte)) - 1) << byte % 4;
    f(*area, byte / 4, static_cast<uint8_t>(mask));
    byte = end;
  }
}

void Shadow::fail(Fault fault, const Area& area, size_t word, const std::string& what) const {
  fail_(fault, what + ": byte " + std::to_string(4 * word) + " of " +
                   (area.number == 0 ? std::string("shared memory")
                                     : "global memory " + std::to_string(area.number - 1)));
}

bool Shadow::is_ordered(const Node& node, uint32_t actor, bool of_warp) const {
  const auto first = node.warp < thread_count_ / 32
                         ? node.warp * 32
                         : thread_count_ + node.warp - thread_count_ / 32;
  const auto is_before = [&](uint32_t lane) {
    return order_->is_before({first + lane, order_->phase(), node.clock}, actor);
  };
  // What a warp does at once comes before what any of its lanes does next, and after what it did.
  if ((node.of_warp || of_warp) && node.warp == order_->warp_of(actor)) return true;
  for (uint32_t lanes = node.lanes, lane = 0; lanes != 0; lanes >>= 1, ++lane) {
    if ((lanes & 1) == 0) continue;
    if (node.of_warp && is_before(lane)) return true;
    if (!node.of_warp && !is_before(lane)) return false;
  }
  return !node.of_warp;
}

// Two blocks of each kind are enough: of two, one is not this one.
void Shadow::require_no_other_block(Area& area, size_t word, uint32_t actor, Kind kind) {
  auto& blocks = area.cells[word].blocks;
  for (const Kind other : {Kind::kRead, Kind::kWrite, Kind::kAtomic}) {
    if (agree(kind, other)) continue;
    for (const uint32_t block : blocks[static_cast<size_t>(other)]) {
      if (block == 0 || block == block_) continue;
      fail(Fault::kAcrossBlocks, area, word,
           "thread " + std::to_string(actor) + " of block " + std::to_string(block_ - 1) + ' ' +
               name_of(kind) + " what block " + std::to_string(block - 1) + ' ' + name_of(other));
    }
  }
  uint32_t(&mine)[2] = blocks[static_cast<size_t>(kind)];
  if (mine[0] == block_ || mine[1] == block_) return;
  (mine[0] == 0 ? mine[0] : mine[1]) = block_;
}

void Shadow::touch(Area& area, size_t word, uint8_t mask, uint32_t actor, Kind kind, bool of_warp) {
  Cell& cell = area.cells[word];
  if (order_->phase() != stamped_phase_) {
    ++stamp_;
    stamped_phase_ = order_->phase();
    nodes_.resize(1);
  }
  if (cell.stamp != stamp_) {
    cell.stamp = stamp_;
    cell.head = 0;
  }
  const Moment now = order_->now(actor);
  const uint32_t warp = order_->warp_of(actor), lanes = of_warp ? ~0u : lane_bit(actor);
  // Most often: what a warp did alone, and now does again.
  if (Node& head = nodes_[cell.head]; cell.head != 0 && head.next == 0 && head.warp == warp &&
                                      head.kind == kind && kind == Kind::kRead &&
                                      head.bytes == mask && head.clock == now.clock &&
                                      head.of_warp == of_warp) {
    head.lanes |= lanes;
    return;
  }
  if (area.number != 0) require_no_other_block(area, word, actor, kind);
  if (area.number == 0 && kind != Kind::kRead) written_[word] = now;
  Node* same = nullptr;
  for (uint32_t at = cell.head; at != 0; at = nodes_[at].next) {
    Node& node = nodes_[at];
    if (node.warp == warp && node.of_warp == of_warp && node.kind == kind && node.bytes == mask &&
        (node.clock == now.clock || (node.lanes & ~lanes) == 0)) {
      same = &node;
    }
    if ((node.bytes & mask) == 0 || agree(node.kind, kind) || is_ordered(node, actor, of_warp)) {
      continue;
    }
    fail(Fault::kUnordered, area, word,
         "thread " + std::to_string(actor) + ' ' + name_of(kind) + " what warp " +
             std::to_string(node.warp) + ' ' + name_of(node.kind));
  }
  if (same != nullptr) {
    // The later one stands for both: what comes after it comes after the earlier one.
    same->lanes = same->clock == now.clock ? same->lanes | lanes : lanes;
    same->clock = now.clock;
    return;
  }
  nodes_.push_back({warp, now.clock, lanes, cell.head, kind, mask, of_warp});
  cell.head = static_cast<uint32_t>(nodes_.size() - 1);
}

void Shadow::access(uint32_t actor, Kind kind, const void* place, size_t bytes, bool of_warp) {
  for_words(place, bytes, [&](Area& area, size_t word, uint8_t mask) {
    const Cell& cell = area.cells[word];
    const auto meets = [&](Fault fault, const char* what) {
      fail(fault, area, word, "thread " + std::to_string(actor) + ' ' + name_of(kind) + what);
    };
    const bool writes = kind != Kind::kRead;
    if (cell.written_by_copies > 0) meets(Fault::kCopyInFlight, " what a copy is still writing");
    if (writes && cell.read_by_copies > 0) {
      meets(Fault::kCopyInFlight, " what a copy is still reading");
    }
    if (writes && cell.read_by_products > 0) {
      meets(Fault::kProductInFlight, " what a product is still reading");
    }
    touch(area, word, mask, actor, kind, of_warp);
  });
}

void Shadow::begin_copy(uint32_t actor, Kind kind, const void* place, size_t bytes) {
  access(actor, kind, place, bytes);
  for_words(place, bytes, [&](Area& area, size_t word, uint8_t) {
    ++(kind == Kind::kRead ? area.cells[word].read_by_copies : area.cells[word].written_by_copies);
  });
}

void Shadow::end_copy(uint32_t actor, Kind kind, const void* place, size_t bytes) {
  for_words(place, bytes, [&](Area& area, size_t word, uint8_t) {
    --(kind == Kind::kRead ? area.cells[word].read_by_copies : area.cells[word].written_by_copies);
  });
  access(actor, kind, place, bytes);
}

void Shadow::begin_product(uint32_t thread, const void* place, size_t bytes) {
  access(thread, Kind::kRead, place, bytes, true);
  for_words(place, bytes, [&](Area& area, size_t word, uint8_t) {
    ++area.cells[word].read_by_products;
    const Moment& written = written_[word];
    if (written.actor == kNobody) {
      fail(Fault::kUnpublished, area, word, "a product reads what nobody wrote");
    } else if (written.actor < thread_count_ && !order_->is_fenced(written, thread)) {
      fail(Fault::kUnpublished, area, word,
           "a product reads what thread " + std::to_string(written.actor) +
               " wrote, with no fence.proxy.async between");
    }
  });
}

void Shadow::end_product(uint32_t thread, const void* place, size_t bytes) {
  for_words(place, bytes,
            [&](Area& area, size_t word, uint8_t) { --area.cells[word].read_by_products; });
  access(thread, Kind::kRead, place, bytes, true);
}

Order::Order(uint32_t thread_count, uint32_t agent_count)
    : thread_count_(thread_count),
      clocks_(thread_count / 32 + agent_count, 1),
      joined_(clocks_.size()),
      known_(thread_count + agent_count),
      fences_(thread_count) {}

Moment Order::now(uint32_t actor) { return {actor, phase_, clocks_[warp_of(actor)], ++tick_}; }

bool Order::is_before(const Moment& moment, uint32_t actor) const {
  if (moment.actor == actor || moment.phase < phase_) return true;
  const uint32_t warp = warp_of(moment.actor);
  if (warp == warp_of(actor) && moment.clock <= joined_[warp]) return true;
  const Knowledge& known = known_[actor];
  return !known.empty() && known[moment.actor] >= moment.clock;
}

void merge(Knowledge& into, const Knowledge& from) {
  if (into.size() < from.size()) into.resize(from.size());
  for (size_t i = 0; i < from.size(); ++i) into[i] = std::max(into[i], from[i]);
}

void Order::warp_barrier(uint32_t warp) {
  joined_[warp] = clocks_[warp]++;
  Knowledge all;
  for (uint32_t lane = 0; lane < 32; ++lane) merge(all, known_[warp * 32 + lane]);
  for (uint32_t lane = 0; lane < 32 && !all.empty(); ++lane) known_[warp * 32 + lane] = all;
}

Knowledge Order::release(uint32_t actor) {
  Knowledge all = known_[actor];
  all.resize(known_.size());
  const uint32_t warp = warp_of(actor);
  for (uint32_t lane = 0; lane < 32 && actor < thread_count_; ++lane) {
    all[warp * 32 + lane] = std::max(all[warp * 32 + lane], joined_[warp]);
  }
  all[actor] = clocks_[warp]++;
  return all;
}

void Order::acquire(uint32_t actor, const Knowledge& known) { merge(known_[actor], known); }

void Order::switch_to_common(uint32_t warp) {
  Knowledge& first = known_[warp * 32];
  if (of_first_) {
    first = *std::exchange(of_first_, std::nullopt);
    return;
  }
  of_first_ = first;
  for (uint32_t lane = 1; lane < 32; ++lane) {
    const Knowledge& other = known_[warp * 32 + lane];
    for (size_t i = 0; i < first.size(); ++i) {
      first[i] = i < other.size() ? std::min(first[i], other[i]) : 0;
    }
  }
}

void Order::fence_proxies(uint32_t thread) {
  fences_[thread].push_back(now(thread));
  if (fence_phases_.empty() || fence_phases_.back() != phase_) fence_phases_.push_back(phase_);
}

bool Order::is_fenced(const Moment& moment, uint32_t thread) const {
  const std::vector<Moment>& of_writer = fences_[moment.actor];
  const auto first = std::ranges::upper_bound(of_writer, moment.tick, {}, &Moment::tick);
  if (first != of_writer.end() && is_before(*first, thread)) return true;
  const std::vector<Moment>& of_reader = fences_[thread];
  if (!of_reader.empty() && of_reader.back().phase > moment.phase) return true;
  const auto phase = std::ranges::upper_bound(fence_phases_, moment.phase);
  return phase != fence_phases_.end() && *phase < phase_;
}

}  // namespace blindfuse::emulator
