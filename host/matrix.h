// The database as the engines see it: signed bytes, in the order in which a CPU reads them.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <vector>

namespace blindfuse {

// R x C bytes. A product passes over them from first to last (with three or four queries in three
// sweeps over each block), one stream that the memory delivers at full speed, whatever the shape;
// columns by themselves would be many streams at distances that fall on the same sets of a cache.
//
//   blocks   of 3072 rows (the last one: what is left, rounded up to 64), each holding
//   tiles    of 6 columns (the last one: what is left), each holding
//   groups   of 64 rows, each holding
//            64 bytes of the tile's first column, 64 of its second, ...
//
// Rows that were rounded up are zero.
class Matrix {
 public:
  static constexpr uint64_t kBlockRows = 3072;
  static constexpr uint64_t kTileColumns = 6;
  static constexpr uint64_t kGroupRows = 64;

  Matrix() = default;
  // All zero, in huge pages where the system has them. Throws EngineTrouble, with the bytes needed
  // and those available, when the machine's memory cannot hold it.
  Matrix(uint64_t row_count, uint64_t column_count);

  uint64_t row_count() const { return row_count_; }
  uint64_t column_count() const { return column_count_; }

  // Sets the columns from `first` on to `bytes`, a whole number of columns of R bytes, one after
  // another. Threads may set different columns at the same time.
  void set_columns(uint64_t first, std::span<const uint8_t> bytes);

  // `count` columns from `first` on, R bytes each, one after another.
  std::vector<uint8_t> columns(uint64_t first, uint64_t count) const;
  int8_t at(uint64_t row, uint64_t column) const { return data_.get()[offset_of(row, column)]; }

  // All bytes as they lie in memory, aligned to 64.
  std::span<const int8_t> bytes() const { return {data_.get(), padded_rows() * column_count_}; }
  // Where block b begins; its rows, rounded up.
  const int8_t* block(uint64_t b) const { return data_.get() + b * kBlockRows * column_count_; }
  uint64_t block_rows(uint64_t b) const {
    const uint64_t left = padded_rows() - b * kBlockRows;
    return left < kBlockRows ? left : kBlockRows;
  }

 private:
  struct Deleter {
    uint64_t bytes;
    void operator()(int8_t* data) const;
  };

  uint64_t padded_rows() const { return (row_count_ + kGroupRows - 1) / kGroupRows * kGroupRows; }
  uint64_t tile_width(uint64_t column) const;
  // The rows of a group follow one another; the next group of the same block is 64 tile_width bytes
  // further.
  uint64_t offset_of(uint64_t row, uint64_t column) const;

  std::unique_ptr<int8_t, Deleter> data_{nullptr, Deleter{0}};
  uint64_t row_count_ = 0;
  uint64_t column_count_ = 0;
};

}  // namespace blindfuse
