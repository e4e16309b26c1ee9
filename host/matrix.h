// The database as the engines see it: signed bytes, stored column by column.
#pragma once

#include <cstdint>
#include <memory>
#include <span>

namespace blindfuse {

// R x C bytes that somebody else owns: column c is the R bytes at data + c * column_stride.
struct MatrixView {
  const int8_t* data = nullptr;
  uint64_t row_count = 0;
  uint64_t column_count = 0;
  uint64_t column_stride = 0;

  const int8_t* column(uint64_t c) const { return data + c * column_stride; }
};

// Owns a matrix: one allocation, aligned to 64 bytes, zero at first, in huge pages where the system
// has them.
class Matrix {
 public:
  Matrix() = default;
  // Throws EngineTrouble, with the bytes needed and those available, when the machine's memory
  // cannot hold it.
  Matrix(uint64_t row_count, uint64_t column_count);

  MatrixView view() const { return {data_.get(), row_count_, column_count_, row_count_}; }
  // The bytes of columns first .. first+count-1, one column after another.
  std::span<uint8_t> columns(uint64_t first, uint64_t count);

 private:
  struct Deleter {
    uint64_t bytes;
    void operator()(int8_t* data) const;
  };
  std::unique_ptr<int8_t, Deleter> data_{nullptr, Deleter{0}};
  uint64_t row_count_ = 0;
  uint64_t column_count_ = 0;
};

}  // namespace blindfuse
