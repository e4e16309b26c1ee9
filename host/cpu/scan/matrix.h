// The database as the engines use it: signed bytes, in the order in which a CPU reads them.
#pragma once

#include <cstdint>
#include <memory>
#include <mutex>
#include <span>
#include <vector>

#include "src/engine/engine.h"

namespace blindfuse {

// R x C bytes. A product passes over them from first to last (with some numbers of queries, a
// kernel makes three sweeps over each block). The runs of memory are so long that they arrive at
// full speed for any shape. Separate columns would be many streams, at distances that fall on the
// same sets of a cache.
//
//   slabs    of a whole number of tiles, each in memory of its own (the last one: what is left),
//            each holding
//   blocks   of 3072 rows (the last one: what is left, rounded up to 64), each holding
//   tiles    of 6 columns (the last one: what is left), each holding
//   groups   of 64 rows, each holding
//            64 bytes of the tile's first column, 64 of its second, ...
//
// Rows that were rounded up are zero. A slab may be shared with another matrix in which it is the
// same. It is then in memory once, as long as one of them has it.
//
// First the matrix is filled: by set_columns() and share_columns(), which any number of threads may
// call for different columns, and then by take_memory(). Before that, nothing else may be called.
// After others share it, no column may be set any more.
class Matrix {
 public:
  static constexpr uint64_t kBlockRows = 3072;
  static constexpr uint64_t kTileColumns = 6;
  static constexpr uint64_t kGroupRows = 64;

  Matrix() = default;
  // Makes a matrix of zeros, in huge pages if the system has them. Takes no memory yet.
  Matrix(uint64_t row_count, uint64_t column_count)
      : Matrix(row_count, column_count, usual_slab_columns(row_count, column_count)) {}
  // slab_columns: a multiple of 6.
  Matrix(uint64_t row_count, uint64_t column_count, uint64_t slab_columns);

  // Returns a width at which a product is hardly slower: all columns, or 512 or more in 64 MiB or
  // more.
  static uint64_t usual_slab_columns(uint64_t row_count, uint64_t column_count);

  uint64_t row_count() const { return row_count_; }
  uint64_t column_count() const { return column_count_; }
  uint64_t slab_columns() const { return slab_columns_; }
  uint64_t slab_count() const { return slabs_.size(); }

  // Sets the columns from `first` on to `bytes`, a whole number of columns of R bytes, one after
  // another. Their memory is not shared, or no longer. Takes memory as take_memory() does.
  void set_columns(uint64_t first, std::span<const uint8_t> bytes);

  // Sets `count` columns from `first` on to those of `other`, which has been filled. Shares the
  // slabs that lie within them, and copies the other columns. Returns false, without any effect, if
  // the two matrices are not cut in the same way.
  bool share_columns(uint64_t first, uint64_t count, const Matrix& other);

  // The bytes of the slabs that do not lie within one of these ranges, which share_columns() would
  // take from `other`. If sharing is impossible, or there is no other matrix, the bytes of all
  // slabs.
  uint64_t bytes_to_take(std::span<const ColumnRange> shared, const Matrix* other) const;

  // Takes memory for all columns that were neither set nor shared; they are zero. Throws
  // ResourceError, with the bytes needed and those available, if the machine's memory cannot hold
  // them.
  void take_memory();

  // Returns `count` columns from `first` on, R bytes each, one after another.
  std::vector<uint8_t> columns(uint64_t first, uint64_t count) const;
  int8_t at(uint64_t row, uint64_t column) const { return *group(row, column); }

  // All bytes of a slab in the order of memory, aligned to 64.
  std::span<const int8_t> slab(uint64_t index) const {
    return {slabs_[index].bytes.get(), padded_rows() * slab_width(index)};
  }
  // The start in block b of the tile with this first column. The next tile of the same slab follows
  // it.
  const int8_t* tile(uint64_t b, uint64_t column) const {
    const uint64_t index = column / slab_columns_;
    return slabs_[index].bytes.get() + b * kBlockRows * slab_width(index) +
           column % slab_columns_ * block_rows(b);
  }
  // The number of rows of block b, rounded up.
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
  // Gives the slab memory of this matrix's own, with the same content.
  int8_t* writable_slab(uint64_t index);
  void copy_columns(uint64_t first, uint64_t last, const Matrix& other);

  uint64_t row_count_ = 0;
  uint64_t column_count_ = 0;
  uint64_t slab_columns_ = kTileColumns;
  std::vector<Slab> slabs_;
  // Guards the references in slabs_ while the matrix is filled, but not the bytes.
  std::unique_ptr<std::mutex> mutex_ = std::make_unique<std::mutex>();
};

}  // namespace blindfuse
