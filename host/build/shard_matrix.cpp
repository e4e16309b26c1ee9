#include "host/build/shard_matrix.h"

#include <algorithm>
#include <array>
#include <vector>

namespace blindfuse {
namespace {

// One cache line a row: assigning a row touches one line for each of a key's rows, whatever the
// record's size.
constexpr uint32_t kBlockColumns = 64;

// R rows of 64 bytes, row by row, for the columns first .. first + width - 1.
struct Block {
  uint32_t first = 0;
  uint32_t width = 0;
  std::vector<std::array<uint8_t, kBlockColumns>> rows;
};

void emit_columns(const Block& block, const ColumnSink& sink, std::vector<uint8_t>& columns) {
  const size_t row_count = block.rows.size();
  columns.resize(row_count * kBlockColumns);
  constexpr size_t kRowsAtOnce = 64;  // row_count is a multiple of 64
  for (size_t r = 0; r < row_count; r += kRowsAtOnce) {
    for (size_t c = 0; c < block.width; ++c) {
      uint8_t* out = columns.data() + c * row_count + r;
      for (size_t i = 0; i < kRowsAtOnce; ++i) out[i] = block.rows[r + i][c];
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
    block.rows.assign(layout.row_count, {});
    fill(block);
    emit_columns(block, sink, columns);
  }
}

}  // namespace

void make_keyword_matrix(const Layout& layout, const Filter& filter,
                         std::span<const SpoolEntry> entries, const ColumnSink& sink) {
  const FuseShape shape = layout.fuse();
  for_each_block(layout, sink, [&](Block& block) {
    for (const FilterStep& step : filter.steps) {
      const SpoolEntry& entry = entries[step.key];
      auto& target = block.rows[step.row];
      encode_record(layout.record, entry.hash.digest, entry.value, block.first,
                    std::span(target).first(block.width));
      const auto rows = fuse_rows(shape, filter.seed, entry.hash.slot_hash);
      for (uint32_t i = 0; i < shape.arity; ++i) {
        if (rows[i] == step.row) continue;
        const auto& other = block.rows[rows[i]];
        for (uint32_t c = 0; c < kBlockColumns; ++c) {
          target[c] = static_cast<uint8_t>(target[c] - other[c]);
        }
      }
    }
  });
}

void make_index_matrix(const Layout& layout, std::span<const SpoolEntry> entries,
                       const ColumnSink& sink) {
  for_each_block(layout, sink, [&](Block& block) {
    for (const SpoolEntry& entry : entries) {
      encode_record(layout.record, entry.hash.digest, entry.value, block.first,
                    std::span(block.rows[entry.hash.slot_hash]).first(block.width));
    }
  });
}

}  // namespace blindfuse
