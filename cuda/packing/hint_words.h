// The hint polynomials of packed responses (host/cpu/packing/hint_polynomials.h), computed by the
// dense product.
#pragma once

#include <cstdint>
#include <span>

#include "cuda/device/memory.h"
#include "cuda/scan/scanner.h"

namespace blindfuse {

// Public polynomials, and for which columns they are.
struct PublicBlocks {
  std::span<const uint32_t> words;    // R for each of some buckets, one bucket after another
  std::span<const uint32_t> buckets;  // of each column, by its place among them
};

// The hint polynomials of all columns of the matrix: word i * C + c is coefficient i of column c's
// polynomial, modulo 2^32. R is a multiple of 2048. On the matrix's device, the current one. Throws
// ResourceError.
DeviceMemory<uint32_t> make_hint_words(Scanner& scanner, const DeviceMatrix& matrix,
                                       const PublicBlocks& blocks);
// The memory that this takes while it runs, including the words. block_words: those of all buckets.
uint64_t hint_words_bytes(uint64_t row_count, uint64_t column_count, uint64_t block_words);

}  // namespace blindfuse
