#include "host/publish/shard_matrix.h"

#include <algorithm>
#include <bit>
#include <vector>

namespace blindfuse {
namespace {

// At most one cache line a row: assigning a row touches one line for each of a key's rows, whatever
// the record's size.
constexpr uint32_t kBlockColumns = 64;

// R rows of `stride` bytes (16, 32 or 64), row by row, for the columns first .. first + width - 1.
// Short rows are closer together, and more of them in the cache.
struct Block {
  uint32_t first = 0;
  uint32_t width = 0;
  uint32_t stride = 0;
  std::vector<uint8_t> bytes;

  uint8_t* row(uint64_t r) { return bytes.data() + r * stride; }
  const uint8_t* row(uint64_t r) const { return bytes.data() + r * stride; }
};

template <size_t kStride>
void subtract(uint8_t* target, const uint8_t* other) {
  for (size_t c = 0; c < kStride; ++c) target[c] = static_cast<uint8_t>(target[c] - other[c]);
}

void subtract(uint8_t* target, const uint8_t* other, uint32_t stride) {
  if (stride == 16) return subtract<16>(target, other);
  if (stride == 32) return subtract<32>(target, other);
  subtract<64>(target, other);
}

void emit_columns(const Block& block, size_t row_count, const ColumnSink& sink,
                  std::vector<uint8_t>& columns) {
  columns.resize(row_count * kBlockColumns);
  constexpr size_t kStripRows = 64;  // row_count is a multiple of 64
  for (size_t r = 0; r < row_count; r += kStripRows) {
    for (size_t c = 0; c < block.width; ++c) {
      uint8_t* out = columns.data() + c * row_count + r;
      for (size_t i = 0; i < kStripRows; ++i) out[i] = block.row(r + i)[c];
    }
  }
  for (size_t c = 0; c < block.width; ++c) sink({columns.data() + c * row_count, row_count});
}

// Calls fill(block) for each block of columns, with all rows zero, and hands its columns on.
void for_each_block(const Layout& layout, const ColumnSink& sink,
                    const std::function<void(Block&)>& fill) {
  Block block;
  std::vector<uint8_t> columns;
  for (uint32_t first = 0; first < layout.record_bytes(); first += kBlockColumns) {
    block.first = first;
    block.width = std::min(kBlockColumns, layout.record_bytes() - first);
    block.stride = std::max(16u, std::bit_ceil(block.width));
    block.bytes.assign(uint64_t{layout.row_count} * block.stride, 0);
    fill(block);
    emit_columns(block, layout.row_count, sink, columns);
  }
}

// Steps come in the order of peeling, and keys and values lie anywhere: what a step will read is
// fetched while earlier ones are done.
void fetch_ahead(std::span<const FilterStep> steps, size_t i, std::span<const SpoolEntry> entries) {
  constexpr size_t kEntryAhead = 16;
  constexpr size_t kValueAhead = 8;
  if (i + kEntryAhead < steps.size()) __builtin_prefetch(&entries[steps[i + kEntryAhead].key]);
  if (i + kValueAhead < steps.size()) {
    __builtin_prefetch(entries[steps[i + kValueAhead].key].value.data());
  }
}

}  // namespace

void make_keyword_matrix(const Layout& layout, const Filter& filter,
                         std::span<const SpoolEntry> entries, const ColumnSink& sink) {
  const FuseShape shape = layout.fuse();
  for_each_block(layout, sink, [&](Block& block) {
    for (size_t i = 0; i < filter.steps.size(); ++i) {
      fetch_ahead(filter.steps, i, entries);
      const FilterStep& step = filter.steps[i];
      const SpoolEntry& entry = entries[step.key];
      uint8_t* target = block.row(step.row);
      encode_record(layout.record, entry.hash.digest, entry.value, block.first,
                    {target, block.width});
      const auto rows = fuse_rows(shape, filter.seed, entry.hash.slot_hash);
      for (uint32_t k = 0; k < shape.arity; ++k) {
        if (rows[k] != step.row) subtract(target, block.row(rows[k]), block.stride);
      }
    }
  });
}

void make_index_matrix(const Layout& layout, std::span<const SpoolEntry> entries,
                       const ColumnSink& sink) {
  for_each_block(layout, sink, [&](Block& block) {
    for (const SpoolEntry& entry : entries) {
      encode_record(layout.record, entry.hash.digest, entry.value, block.first,
                    {block.row(entry.hash.slot_hash), block.width});
    }
  });
}

}  // namespace blindfuse
