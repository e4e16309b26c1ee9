// Queries whose products are known: odd multiples of one query. Their products are the same
// multiples of its product. The multiple of query j is 2 j + 1. Modulo 2^32 an odd multiple of a
// number is zero only if the number is, so an error of one byte of the matrix shows in every query.
// Two queries j and k have the same product in a column only if the column's product times 2 (j -
// k) is zero.
#pragma once

#include <cuda_runtime_api.h>

#include <cstdint>

namespace blindfuse {

// All addresses are the current device's. The functions throw as check_cuda() does.

// words[j * row_count + r] = (2 (first + j) + 1) * query[r], modulo 2^32, for `count` queries from
// `first` on. Comes after the work that is in the stream.
void start_odd_multiples(const uint32_t* query, uint64_t row_count, uint32_t first, uint32_t count,
                         uint32_t* words, cudaStream_t stream);

// The place of wrong products.
struct ProductDifference {
  uint64_t count = 0;  // of words that differ
  uint32_t query = 0;  // of the first
  uint64_t column = 0;
};

// Compares products[j * column_count + c] with (2 j + 1) * product[c], modulo 2^32, for all queries
// j below query_count. Waits for the work in the stream.
ProductDifference compare_products(const uint32_t* products, const uint32_t* product,
                                   uint64_t column_count, uint32_t query_count,
                                   cudaStream_t stream);

// Fills memory with words that look random, for measurements: 8 bytes each. Comes after the work
// that is in the stream.
void start_noise(uint64_t* words, uint64_t word_count, cudaStream_t stream);

}  // namespace blindfuse
