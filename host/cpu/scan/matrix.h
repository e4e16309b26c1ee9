// The database as the engines see it: signed bytes, in the order in which a CPU reads them.
#pragma once

#include <cstdint>
#include <memory>
#include <mutex>
#include <span>
#include <vector>

#include "src/engine/batches.h"

namespace blindfuse {

// R x C bytes. A product passes over them from first to last (with three or four queries in three
// sweeps over each block), runs of memory so long that they are delivered at full speed, whatever
// the shape; columns by themselves would be many streams at distances that fall on the same sets of
// a cache.
//
//   slabs    of a whole number of tiles, each in memory of its own (the last one: what is left),
//            each holding
//   blocks   of 3072 rows (the last one: what is left, rounded up to 64), each holding
//   tiles    of 6 columns (the last one: what is left), each holding
//   groups   of 64 rows, each holding
//            64 bytes of the tile's first column, 64 of its second, ...
//
// Rows that were rounded up are zero. A slab may be shared with another matrix in which it is the
// same: then it is in memory once, and stays there for as long as one of them has it.
//
// First it is filled: by set_columns() and share_columns(), by any number of threads for different
// columns, then take_memory(). Until then nothing else may be called; and once others share it,
// nothing is set any more.
class Matrix {
 public:
  static constexpr uint64_t kBlockRows = 3072;
  static constexpr uint64_t kTileColumns = 6;
  static constexpr uint64_t kGroupRows = 64;

  Matrix() = default;
  // All zero, in huge pages where the system has them. Takes no memory yet.
  Matrix(uint64_t row_count, uint64_t column_count)
      : Matrix(row_count, column_count, usual_slab_columns(row_count, column_count)) {}
  // slab_columns: a multiple of 6.
  Matrix(uint64_t row_count, uint64_t column_count, uint64_t slab_columns);

  // So wide that a product is hardly slower for it: all columns, or 512 or more in 64 MiB or more.
  static uint64_t usual_slab_columns(uint64_t row_count, uint64_t column_count);

  uint64_t row_count() const { return row_count_; }
  uint64_t column_count() const { return column_count_; }
  uint64_t slab_columns() const { return slab_columns_; }
  uint64_t slab_count() const { return slabs_.size(); }

  // Sets the columns from `first` on to `bytes`, a whole number of columns of R bytes, one after
  // another; in memory that is not shared, or no longer. Takes memory as take_memory() does.
  void set_columns(uint64_t first, std::span<const uint8_t> bytes);

  // Sets `count` columns from `first` on to what they are in `other`, which has been filled: shares
  // the slabs that lie within them, and copies the columns of others. False, with nothing done,
  // when the two are not cut alike.
  bool share_columns(uint64_t first, uint64_t count, const Matrix& other);

  // Bytes of the slabs that do not lie within one of these ranges, which share_columns() would take
  // from `other`; of all slabs where it cannot, or there is none.
  uint64_t bytes_to_take(std::span<const ColumnRange> shared, const Matrix* other) const;

  // Memory for all columns that were neither set nor shared; they are zero. Throws ResourceError,
  // with the bytes needed and those available, when the machine's memory cannot hold them.
  void take_memory();

  // `count` columns from `first` on, R bytes each, one after another.
  std::vector<uint8_t> columns(uint64_t first, uint64_t count) const;
  int8_t at(uint64_t row, uint64_t column) const { return *group(row, column); }

  // All bytes of a slab as they lie in memory, aligned to 64.
  std::span<const int8_t> slab(uint64_t index) const {
    return {slabs_[index].bytes.get(), padded_rows() * slab_width(index)};
  }
  // Where the tile whose first column this is begins in block b. The next tile of the same slab
  // follows it.
  const int8_t* tile(uint64_t b, uint64_t column) const {
    const uint64_t index = column / slab_columns_;
    return slabs_[index].bytes.get() + b * kBlockRows * slab_width(index) +
           column % slab_columns_ * block_rows(b);
  }
  // The rows of block b, rounded up.
  uint64_t block_rows(uint64_t b) const {
    const uint64_t left = padded_rows() - b * kBlockRows;
    return left < kBlockRows ? left : kBlockRows;
  }

 private:
  struct Slab {
    std::shared_ptr<int8_t[]> bytes;
    bool is_ours = false;  // not taken from another matrix
  };

  uint64_t padded_rows() const { return (row_count_ + kGroupRows - 1) / kGroupRows * kGroupRows; }
  uint64_t slab_width(uint64_t index) const;
  uint64_t tile_width(uint64_t column) const;
  // The rows of a group follow one another; the next group of the same block is 64 tile_width bytes
  // further.
  uint64_t offset_in_slab(uint64_t row, uint64_t column) const;
  const int8_t* group(uint64_t row, uint64_t column) const {
    return slabs_[column / slab_columns_].bytes.get() + offset_in_slab(row, column);
  }

  bool is_cut_as(const Matrix& other) const;
  Slab make_slab(uint64_t index) const;
  // Memory that is this matrix's alone, with what was in the slab.
  int8_t* writable_slab(uint64_t index);
  void copy_columns(uint64_t first, uint64_t last, const Matrix& other);

  uint64_t row_count_ = 0;
  uint64_t column_count_ = 0;
  uint64_t slab_columns_ = kTileColumns;
  std::vector<Slab> slabs_;
  // Of what slabs_ refers to, while it is filled; not of their bytes.
  std::unique_ptr<std::mutex> mutex_ = std::make_unique<std::mutex>();
};

}  // namespace blindfuse
