#include "host/cpu/scan/query_limbs.h"

#include <algorithm>
#include <array>
#include <new>

#include "src/base/errors.h"

namespace blindfuse {
namespace {

constexpr std::align_val_t kAlignment{64};

// The words of one query, which come in panels of 64 (src/engine/engine.h).
class Words {
 public:
  Words(const QueryBatch& queries, size_t query)
      : words_(queries.words + query * queries.stride), panel_stride_(queries.panel_stride) {}

  const uint32_t* panel_of(uint64_t i) const { return words_ + i / kGroupRows * panel_stride_; }
  uint32_t operator[](uint64_t i) const { return panel_of(i)[i % kGroupRows]; }

 private:
  const uint32_t* words_;
  size_t panel_stride_;
};

// Packs whole groups where they are. Meanwhile the same groups of the next query come nearer: they
// lie in other pages, where the processor does not look by itself.
void pack_groups(const MultiplyKernel& kernel, const uint32_t* words, const uint32_t* next,
                 size_t group_stride, size_t group_count, uint8_t* limbs) {
  constexpr size_t kStep = 4;
  constexpr size_t kLineWords = 16;
  for (size_t g = 0; g < group_count; g += kStep) {
    const size_t count = std::min(kStep, group_count - g);
    for (size_t i = g; i < g + count; ++i) {
      for (size_t line = 0; line < kGroupRows; line += kLineWords) {
        __builtin_prefetch(next + i * group_stride + line);
      }
    }
    kernel.cut(words + g * group_stride, group_stride, count, limbs + g * kGroupBytes);
  }
}

// Packs any words, one by one.
void pack_slowly(const MultiplyKernel& kernel, const Words& words, RowRange range, size_t lead,
                 uint8_t* limbs) {
  std::array<uint32_t, kGroupRows> group;
  for (uint64_t i = range.first; i < range.last; limbs += kGroupBytes) {
    group.fill(0);
    for (size_t r = lead; r < kGroupRows && i < range.last; ++r) group[r] = words[i++];
    kernel.cut(group.data(), kGroupRows, 1, limbs);
    lead = 0;
  }
}

}  // namespace

QueryLimbs::QueryLimbs(const MultiplyKernel& kernel)
    : kernel_(kernel),
      bytes_max_(kernel.queries_at_once * Matrix::kBlockRows * sizeof(uint32_t)),
      bytes_(allocate(bytes_max_)),
      scratch_(allocate(kernel.scratch_bytes)) {}

QueryLimbs::Buffer QueryLimbs::allocate(size_t bytes) {
  return Buffer(static_cast<uint8_t*>(operator new(bytes, kAlignment)));
}

void QueryLimbs::Deleter::operator()(uint8_t* bytes) const { operator delete(bytes, kAlignment); }

void QueryLimbs::cut(const QueryBatch& queries, RowRange words, size_t lead) {
  group_count_ = (lead + words.size() + kGroupRows - 1) / kGroupRows;
  query_count_ = queries.count;
  const size_t query_bytes = group_count_ * kGroupBytes;
  invariant(query_bytes * query_count_ <= bytes_max_, "queries fit their buffer");
  // Panels of words that are groups of rows are cut where they are.
  const bool in_place = lead == 0 && words.first % kGroupRows == 0;
  const uint64_t whole = in_place ? words.size() / kGroupRows : 0;
  for (size_t b = 0; b < queries.count; ++b) {
    const Words query(queries, b);
    uint8_t* limbs = bytes_.get() + b * query_bytes;
    const uint32_t* whole_words = query.panel_of(words.first);
    pack_groups(kernel_, whole_words, whole_words + queries.stride, queries.panel_stride, whole,
                limbs);
    pack_slowly(kernel_, query, {words.first + whole * kGroupRows, words.last}, lead,
                limbs + whole * kGroupBytes);
  }
}

MultiplyArgs QueryLimbs::args() const {
  MultiplyArgs args{};
  args.queries = bytes_.get();
  args.query_stride = group_count_ * kGroupBytes;
  args.query_count = query_count_;
  args.group_count = group_count_;
  args.scratch = scratch_.get();
  return args;
}

}  // namespace blindfuse
