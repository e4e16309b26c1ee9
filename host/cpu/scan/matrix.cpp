#include "host/cpu/scan/matrix.h"

#include <algorithm>
#include <utility>

#include "host/system/memory.h"
#include "src/base/errors.h"

namespace blindfuse {
namespace {

constexpr const char* kWhat = "the matrix";

}  // namespace

uint64_t Matrix::usual_slab_columns(uint64_t row_count, uint64_t column_count) {
  // Many huge pages; and, of a block of rows, 1.5 MB at a time (bench/results/NOTEBOOK.md).
  constexpr uint64_t kBytesMin = 64 << 20;
  constexpr uint64_t kColumnsMin = 512;
  const uint64_t least = std::max(kColumnsMin, kBytesMin / std::max<uint64_t>(row_count, 1));
  const uint64_t count = std::max<uint64_t>(1, column_count / least);
  const uint64_t grain = count * kTileColumns;
  return std::max<uint64_t>(1, (column_count + grain - 1) / grain) * kTileColumns;
}

Matrix::Matrix(uint64_t row_count, uint64_t column_count, uint64_t slab_columns)
    : row_count_(row_count),
      column_count_(column_count),
      slab_columns_(slab_columns),
      slabs_((column_count + slab_columns - 1) / slab_columns) {
  invariant(slab_columns % kTileColumns == 0, "slabs are whole tiles");
}

uint64_t Matrix::slab_width(uint64_t index) const {
  return std::min(slab_columns_, column_count_ - index * slab_columns_);
}

uint64_t Matrix::tile_width(uint64_t column) const {
  return std::min(kTileColumns, column_count_ - column / kTileColumns * kTileColumns);
}

uint64_t Matrix::offset_in_slab(uint64_t row, uint64_t column) const {
  const uint64_t block = row / kBlockRows;
  const uint64_t group = row % kBlockRows / kGroupRows;
  const uint64_t in_tile = column % kTileColumns;
  return block * kBlockRows * slab_width(column / slab_columns_) +
         (column % slab_columns_ - in_tile) * block_rows(block) +
         (group * tile_width(column) + in_tile) * kGroupRows + row % kGroupRows;
}

Matrix::Slab Matrix::make_slab(uint64_t index) const {
  const auto memory = map_memory(kWhat, padded_rows() * slab_width(index));
  return {std::shared_ptr<int8_t[]>(memory, static_cast<int8_t*>(memory.get())), true};
}

void Matrix::take_memory() {
  const std::lock_guard lock(*mutex_);
  uint64_t bytes = 0;
  for (uint64_t i = 0; i < slabs_.size(); ++i) {
    if (!slabs_[i].bytes) bytes += padded_rows() * slab_width(i);
  }
  if (bytes == 0) return;
  check_memory(kWhat, bytes);
  for (uint64_t i = 0; i < slabs_.size(); ++i) {
    if (!slabs_[i].bytes) slabs_[i] = make_slab(i);
  }
}

int8_t* Matrix::writable_slab(uint64_t index) {
  const std::lock_guard lock(*mutex_);
  Slab& slab = slabs_[index];
  if (!slab.is_ours) {
    Slab own = make_slab(index);
    if (slab.bytes) std::ranges::copy(this->slab(index), own.bytes.get());
    slab = std::move(own);
  }
  return slab.bytes.get();
}

void Matrix::set_columns(uint64_t first, std::span<const uint8_t> bytes) {
  if (bytes.empty()) return;
  const uint64_t count = bytes.size() / row_count_;
  invariant(count * row_count_ == bytes.size() && first + count <= column_count_,
            "whole columns that lie in the matrix");
  take_memory();
  for (uint64_t i = 0; i < count; ++i) {
    const uint64_t column = first + i;
    const uint64_t stride = tile_width(column) * kGroupRows;
    const uint8_t* from = bytes.data() + i * row_count_;
    int8_t* slab = writable_slab(column / slab_columns_);
    for (uint64_t block_first = 0; block_first < row_count_; block_first += kBlockRows) {
      auto* to = reinterpret_cast<uint8_t*>(slab + offset_in_slab(block_first, column));
      const uint64_t block_last = std::min(block_first + kBlockRows, row_count_);
      for (uint64_t row = block_first; row < block_last; row += kGroupRows, to += stride) {
        std::copy_n(from + row, std::min(kGroupRows, block_last - row), to);
      }
    }
  }
}

bool Matrix::is_cut_as(const Matrix& other) const {
  return other.row_count_ == row_count_ && other.column_count_ == column_count_ &&
         other.slab_columns_ == slab_columns_;
}

uint64_t Matrix::bytes_to_take(std::span<const ColumnRange> shared, const Matrix* other) const {
  const bool can_share = other != nullptr && is_cut_as(*other);
  uint64_t bytes = 0;
  for (uint64_t i = 0; i < slabs_.size(); ++i) {
    const uint64_t first = i * slab_columns_;
    const uint64_t width = slab_width(i);
    const bool is_shared =
        can_share && std::ranges::any_of(shared, [&](const ColumnRange& range) {
          return range.first <= first && first + width <= range.first + range.count;
        });
    if (!is_shared) bytes += padded_rows() * width;
  }
  return bytes;
}

bool Matrix::share_columns(uint64_t first, uint64_t count, const Matrix& other) {
  if (!is_cut_as(other)) return false;
  invariant(first + count <= column_count_, "the columns lie in the matrix");
  const uint64_t last = first + count;
  for (uint64_t column = first; column < last;) {
    const uint64_t index = column / slab_columns_;
    const uint64_t slab_first = index * slab_columns_;
    const uint64_t slab_last = slab_first + slab_width(index);
    const uint64_t end = std::min(last, slab_last);
    if (column == slab_first && end == slab_last) {
      const std::lock_guard lock(*mutex_);
      slabs_[index] = {other.slabs_[index].bytes, false};
    } else {
      copy_columns(column, end, other);
    }
    column = end;
  }
  return true;
}

// Columns of one slab, group by group: in a tile they lie side by side.
void Matrix::copy_columns(uint64_t first, uint64_t last, const Matrix& other) {
  int8_t* slab = writable_slab(first / slab_columns_);
  for (uint64_t column = first; column < last;) {
    const uint64_t end = std::min(last, (column / kTileColumns + 1) * kTileColumns);
    const uint64_t stride = tile_width(column) * kGroupRows;
    for (uint64_t row = 0; row < row_count_; row += kBlockRows) {
      const int8_t* from = other.group(row, column);
      int8_t* to = slab + offset_in_slab(row, column);
      for (uint64_t left = block_rows(row / kBlockRows); left != 0; left -= kGroupRows) {
        std::copy_n(from, (end - column) * kGroupRows, to);
        from += stride;
        to += stride;
      }
    }
    column = end;
  }
}

std::vector<uint8_t> Matrix::columns(uint64_t first, uint64_t count) const {
  invariant(first + count <= column_count_, "the columns lie in the matrix");
  std::vector<uint8_t> bytes;
  bytes.reserve(count * row_count_);
  for (uint64_t column = first; column < first + count; ++column) {
    for (uint64_t row = 0; row < row_count_; row += kGroupRows) {
      const int8_t* rows = group(row, column);
      bytes.insert(bytes.end(), rows, rows + std::min(kGroupRows, row_count_ - row));
    }
  }
  return bytes;
}

}  // namespace blindfuse
