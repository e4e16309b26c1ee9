#include "host/matrix.h"

#include <sys/mman.h>

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
  const uint64_t bytes = row_count * column_count;
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

std::span<uint8_t> Matrix::columns(uint64_t first, uint64_t count) {
  invariant(first + count <= column_count_, "the columns lie in the matrix");
  return {reinterpret_cast<uint8_t*>(data_.get()) + first * row_count_, count * row_count_};
}

}  // namespace blindfuse
