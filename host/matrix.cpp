#include "host/matrix.h"

#include <sys/mman.h>

#include <algorithm>
#include <cstdio>
#include <string>

#include "src/errors.h"

namespace blindfuse {
namespace {

// What the kernel reckons a new program could use without swapping.
uint64_t available_memory_bytes() {
  uint64_t kibibytes = 0;
  if (std::FILE* file = std::fopen("/proc/meminfo", "r")) {
    char line[128];
    unsigned long long value = 0;
    while (std::fgets(line, sizeof line, file) != nullptr) {
      if (std::sscanf(line, "MemAvailable: %llu kB", &value) == 1) kibibytes = value;
    }
    std::fclose(file);
  }
  return kibibytes * 1024;
}

}  // namespace

Matrix::Matrix(uint64_t row_count, uint64_t column_count)
    : row_count_(row_count), column_count_(column_count) {
  const uint64_t bytes = padded_rows() * column_count;
  if (bytes == 0) return;
  const auto too_large = [bytes] {
    return EngineTrouble("the matrix needs " + std::to_string(bytes) +
                         " bytes of memory; this machine has " +
                         std::to_string(available_memory_bytes()) + " available");
  };
  // The kernel hands out addresses for more than it has and kills us later; ask first.
  const uint64_t available = available_memory_bytes();
  if (available != 0 && bytes > available) throw too_large();
  void* data = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (data == MAP_FAILED) throw too_large();
  madvise(data, bytes, MADV_HUGEPAGE);  // fewer TLB misses in a scan; merely slower without
  data_ = std::unique_ptr<int8_t, Deleter>(static_cast<int8_t*>(data), Deleter{bytes});
}

void Matrix::Deleter::operator()(int8_t* data) const { munmap(data, bytes); }

uint64_t Matrix::tile_width(uint64_t column) const {
  return std::min(kTileColumns, column_count_ - column / kTileColumns * kTileColumns);
}

uint64_t Matrix::offset_of(uint64_t row, uint64_t column) const {
  const uint64_t block = row / kBlockRows;
  const uint64_t group = row % kBlockRows / kGroupRows;
  const uint64_t tile_first = column / kTileColumns * kTileColumns;
  return block * kBlockRows * column_count_ + tile_first * block_rows(block) +
         (group * tile_width(column) + (column - tile_first)) * kGroupRows + row % kGroupRows;
}

void Matrix::set_columns(uint64_t first, std::span<const uint8_t> bytes) {
  if (bytes.empty()) return;
  const uint64_t count = bytes.size() / row_count_;
  invariant(count * row_count_ == bytes.size() && first + count <= column_count_,
            "whole columns that lie in the matrix");
  for (uint64_t i = 0; i < count; ++i) {
    const uint64_t column = first + i;
    const uint64_t stride = tile_width(column) * kGroupRows;
    const uint8_t* from = bytes.data() + i * row_count_;
    for (uint64_t block_first = 0; block_first < row_count_; block_first += kBlockRows) {
      auto* to = reinterpret_cast<uint8_t*>(data_.get()) + offset_of(block_first, column);
      const uint64_t block_last = std::min(block_first + kBlockRows, row_count_);
      for (uint64_t row = block_first; row < block_last; row += kGroupRows, to += stride) {
        std::copy_n(from + row, std::min(kGroupRows, block_last - row), to);
      }
    }
  }
}

std::vector<uint8_t> Matrix::columns(uint64_t first, uint64_t count) const {
  invariant(first + count <= column_count_, "the columns lie in the matrix");
  std::vector<uint8_t> bytes;
  bytes.reserve(count * row_count_);
  for (uint64_t column = first; column < first + count; ++column) {
    for (uint64_t row = 0; row < row_count_; row += kGroupRows) {
      const int8_t* group = data_.get() + offset_of(row, column);
      bytes.insert(bytes.end(), group, group + std::min(kGroupRows, row_count_ - row));
    }
  }
  return bytes;
}

}  // namespace blindfuse
