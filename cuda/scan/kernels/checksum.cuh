// A checksum of every column, to compare with the host's once the matrix has arrived.
//
// Roofline: reads the matrix once.
#pragma once

#include <cstdint>
#include <cub/block/block_reduce.cuh>

namespace blindfuse {
// Every file that includes this has its own: the tests run the same kernels on the CPU.
namespace {

constexpr uint32_t kChecksumThreads = 256;

// sum over i of (2 i + 1) times the i-th 8 bytes (little endian) of a column, modulo 2^64: column c
// begins at columns + c * pitch, and has `words` times 8 bytes. A block for each column.
__global__ void __launch_bounds__(kChecksumThreads)
    checksum_columns(const uint64_t* columns, uint64_t pitch_words, uint64_t words,
                     unsigned long long* sums) {
  using Reduce = cub::BlockReduce<unsigned long long, kChecksumThreads>;
  __shared__ typename Reduce::TempStorage storage;
  const uint64_t* column = columns + blockIdx.x * pitch_words;
  unsigned long long sum = 0;
  for (uint64_t i = threadIdx.x; i < words; i += kChecksumThreads) sum += (2 * i + 1) * column[i];
  sum = Reduce(storage).Sum(sum);
  if (threadIdx.x == 0) sums[blockIdx.x] = sum;
}

}  // namespace
}  // namespace blindfuse
