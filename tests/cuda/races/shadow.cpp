#include "tests/cuda/races/shadow.h"

#include <algorithm>
#include <cstdlib>
#include <new>

namespace blindfuse::races {
namespace {

const char* name_of(Kind kind) {
  switch (kind) {
    case Kind::kRead:
      return "reads";
    case Kind::kWrite:
      return "writes";
    default:
      return "updates";
  }
}

bool agree(Kind a, Kind b) {
  return (a == Kind::kRead && b == Kind::kRead) || (a == Kind::kAtomic && b == Kind::kAtomic);
}

}  // namespace

std::string name_of(Fault fault) {
  switch (fault) {
    case Fault::kUnordered:
      return "no order";
    case Fault::kAcrossBlocks:
      return "two blocks";
    case Fault::kCopyInFlight:
      return "copy in flight";
    case Fault::kProductInFlight:
      return "product in flight";
    case Fault::kUnpublished:
      return "no proxy fence";
    case Fault::kRegisters:
      return "registers";
    case Fault::kUnwatched:
      return "foreign memory";
    default:
      return "hang";
  }
}

Shadow::Shadow(Range shared, std::span<const Range> global, uint32_t thread_count, Report report)
    : report_(std::move(report)), thread_count_(thread_count), nodes_(1) {
  const auto add = [&](const Range& range, bool is_shared) {
    const size_t words = range.bytes / 4 + 2;
    // Zeros that take no memory until they are touched.
    auto* const cells = static_cast<Cell*>(std::calloc(words, sizeof(Cell)));
    if (cells == nullptr) throw std::bad_alloc();
    areas_.push_back({static_cast<const uint8_t*>(range.begin),
                      range.bytes,
                      is_shared,
                      areas_.size(),
                      cells,
                      {},
                      {}});
    if (is_shared) areas_.back().last_write.resize(words), areas_.back().written.resize(words);
  };
  add(shared, true);
  for (const Range& range : global) add(range, false);
}

Shadow::~Shadow() {
  for (const Area& area : areas_) std::free(area.cells);
}

void Shadow::begin_block(uint32_t block, Order& order) {
  block_ = block;
  order_ = &order;
  ++stamp_;
  stamped_phase_ = 0;
  std::ranges::fill(areas_[0].written, uint8_t{0});
  for (size_t i = 0; i < areas_[0].bytes / 4 + 2; ++i) {
    Cell& cell = areas_[0].cells[i];
    cell.written_by_copies = cell.read_by_copies = cell.read_by_products = 0;
  }
}

const Shadow::Area* Shadow::find(const void* place) const {
  const auto* at = static_cast<const uint8_t*>(place);
  for (const Area& area : areas_) {
    if (at >= area.begin && at < area.begin + area.bytes) return &area;
  }
  return nullptr;
}

Shadow::Area* Shadow::find(const void* place) {
  return const_cast<Area*>(static_cast<const Shadow*>(this)->find(place));
}

// f(area, word, mask of bytes) for each word.
template <class F>
void Shadow::for_words(const void* place, size_t bytes, const F& f) {
  Area* const area = find(place);
  const auto* const at = static_cast<const uint8_t*>(place);
  if (area == nullptr || at + bytes > area->begin + area->bytes) {
    report_(Fault::kUnwatched, "an access that begins or ends outside of the kernel's memory");
    return;
  }
  const auto first = static_cast<size_t>(at - area->begin);
  for (size_t byte = first; byte < first + bytes;) {
    const size_t end = std::min(first + bytes, byte / 4 * 4 + 4);
    const unsigned mask = ((1u << (end - byte)) - 1) << byte % 4;
    f(*area, byte / 4, static_cast<uint8_t>(mask));
    byte = end;
  }
}

void Shadow::report(Fault fault, const Area& area, size_t word, const std::string& what) const {
  report_(fault, what + ": byte " + std::to_string(4 * word) + " of " +
                     (area.is_shared ? std::string("shared memory")
                                     : "global memory " + std::to_string(area.number - 1)));
}

bool Shadow::is_ordered(const Node& node, uint32_t thread, bool of_warp) const {
  if (node.block != block_) return false;
  // What a warp does at once comes before what any of its lanes does next, and after what it did.
  if ((node.of_warp || of_warp) && node.moment.thread / 32 == thread / 32) return true;
  return order_->is_before(node.moment, thread);
}

// Forgets accesses that can race no more: of shared memory all before the last barrier; of global
// memory those are kept once a block, for the blocks to come.
void Shadow::bring_up_to_date(Area& area, Cell& cell) {
  if (order_->phase() != stamped_phase_) ++stamp_, stamped_phase_ = order_->phase();
  if (cell.stamp == stamp_) return;
  cell.stamp = stamp_;
  uint32_t kept = 0;
  for (uint32_t at = cell.head; at != 0;) {
    Node& node = nodes_[at];
    const uint32_t next = node.next;
    bool keep = !area.is_shared;
    for (uint32_t other = kept; keep && other != 0; other = nodes_[other].next) {
      const Node& o = nodes_[other];
      keep = !(o.block == node.block && o.kind == node.kind && (o.bytes | node.bytes) == o.bytes);
    }
    node.next = keep ? kept : free_;
    (keep ? kept : free_) = at;
    at = next;
  }
  cell.head = kept;
}

void Shadow::touch(Area& area, size_t word, uint8_t mask, uint32_t thread, Kind kind,
                   bool of_warp) {
  Cell& cell = area.cells[word];
  bring_up_to_date(area, cell);
  const Moment now = order_->now(thread);
  bool is_known = false;
  for (uint32_t at = cell.head; at != 0; at = nodes_[at].next) {
    Node& node = nodes_[at];
    if (node.block == block_ && node.moment.thread == thread && node.of_warp == of_warp &&
        node.kind == kind && node.bytes == mask) {
      // The later one stands for both: what comes after it comes after the earlier one.
      if (node.moment.phase == now.phase) node.moment = now, is_known = true;
      continue;
    }
    if ((node.bytes & mask) == 0 || agree(node.kind, kind) || is_ordered(node, thread, of_warp)) {
      continue;
    }
    report(node.block == block_ ? Fault::kUnordered : Fault::kAcrossBlocks, area, word,
           "thread " + std::to_string(thread) + " of block " + std::to_string(block_) + ' ' +
               name_of(kind) + " what thread " + std::to_string(node.moment.thread) + " of block " +
               std::to_string(node.block) + ' ' + name_of(node.kind));
  }
  if (area.is_shared && kind != Kind::kRead) {
    area.last_write[word] = now;
    area.written[word] = 1;
  }
  if (is_known) return;
  uint32_t place = free_;
  if (place != 0) {
    free_ = nodes_[place].next;
  } else {
    place = static_cast<uint32_t>(nodes_.size());
    nodes_.emplace_back();
  }
  nodes_[place] = {now, block_, cell.head, kind, mask, of_warp};
  cell.head = place;
}

void Shadow::access(uint32_t thread, Kind kind, const void* place, size_t bytes, bool of_warp) {
  for_words(place, bytes, [&](Area& area, size_t word, uint8_t mask) {
    const Cell& cell = area.cells[word];
    const auto meets = [&](Fault fault, const char* what) {
      report(fault, area, word, "thread " + std::to_string(thread) + ' ' + name_of(kind) + what);
    };
    const bool writes = kind != Kind::kRead;
    if (cell.written_by_copies > 0) {
      meets(Fault::kCopyInFlight, " what a copy is still writing");
    } else if (writes && cell.read_by_copies > 0) {
      meets(Fault::kCopyInFlight, " what a copy is still reading");
    }
    if (writes && cell.read_by_products > 0) {
      meets(Fault::kProductInFlight, " what a product is still reading");
    }
    touch(area, word, mask, thread, kind, of_warp);
  });
}

void Shadow::begin_copy(uint32_t thread, Kind kind, const void* place, size_t bytes) {
  access(thread, kind, place, bytes);
  for_words(place, bytes, [&](Area& area, size_t word, uint8_t) {
    ++(kind == Kind::kRead ? area.cells[word].read_by_copies : area.cells[word].written_by_copies);
  });
}

void Shadow::end_copy(uint32_t thread, Kind kind, const void* place, size_t bytes) {
  for_words(place, bytes, [&](Area& area, size_t word, uint8_t) {
    --(kind == Kind::kRead ? area.cells[word].read_by_copies : area.cells[word].written_by_copies);
  });
  access(thread, kind, place, bytes);
}

void Shadow::begin_product(uint32_t thread, const void* place, size_t bytes) {
  access(thread, Kind::kRead, place, bytes, true);
  for_words(place, bytes, [&](Area& area, size_t word, uint8_t) {
    if (!area.is_shared) return report(Fault::kUnwatched, area, word, "a product reads");
    ++area.cells[word].read_by_products;
    if (area.written[word] == 0) {
      report(Fault::kUnpublished, area, word, "a product reads what nobody wrote");
    } else if (const Moment& written = area.last_write[word];
               written.thread < thread_count_ && !order_->is_fenced(written, thread)) {
      report(Fault::kUnpublished, area, word,
             "a product reads what thread " + std::to_string(written.thread) +
                 " wrote, with no fence.proxy.async between");
    }
  });
}

void Shadow::end_product(uint32_t thread, const void* place, size_t bytes) {
  for_words(place, bytes,
            [&](Area& area, size_t word, uint8_t) { --area.cells[word].read_by_products; });
  access(thread, Kind::kRead, place, bytes, true);
}

}  // namespace blindfuse::races
