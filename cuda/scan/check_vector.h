// The vector with which every product of a batch is checked (Huang and Abraham, Algorithm-based
// fault tolerance for matrix operations, 1984).
//
// With odd weights w, a word a column, and v = M w, the products P of queries Q with the matrix M
// are right only if P w = Q v modulo 2^32, a number for each query. Where one word of a query's
// product is wrong, by d, the two differ by d w, which an odd w leaves different from 0. Where
// several are, all by multiples of 2^k and one by no multiple of 2^(k+1), the two are equal for at
// most one choice of weights in 2^(31-k): a weight whose error is an odd multiple of 2^k brings, as
// it takes all odd values, 2^(31-k) different ones. So errors in the highest bits of many words are
// seen less often, and two of exactly 2^31 never.
//
// Q v is computed from the words that have arrived in the device's memory, and not from their
// limbs. So wrong limbs are found as well. A query that was altered on its way agrees with its
// product.
#pragma once

#include <cuda_runtime_api.h>

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "cuda/device/memory.h"
#include "cuda/scan/device_matrix.h"
#include "cuda/scan/kernels/scan_args.h"

namespace blindfuse {

// v and w in the device's memory. Where queries have words for each of several buckets, so has v: R
// words for each bucket, of its columns alone, one bucket after another. The matrix outlives it.
class CheckVector {
 public:
  // weights: C words, all odd. C is a multiple of bucket_count. v is zero until compute() is
  // called. Throws as check_cuda() does.
  CheckVector(const DeviceMatrix& matrix, std::span<const uint32_t> weights,
              size_t bucket_count = 1);

  // Device memory for a matrix of this many rows and columns.
  static uint64_t bytes_of(uint64_t row_count, uint64_t column_count, size_t bucket_count = 1);

  size_t bucket_count() const { return bucket_count_; }

  // Multiplies the matrix with the weights in one scan, waits for it, and returns v.
  std::vector<uint32_t> compute();

  // The arguments with which start_cut() adds a bucket's part of Q v to one sum for each query.
  QuerySums query_sums(uint32_t* sums, size_t bucket = 0) const {
    return {words_.data() + bucket * matrix_.pitch(), sums};
  }
  // The excess of each of these sums over Q v after all buckets: 1 for each warp that had words to
  // add up.
  uint32_t cut_warps() const;
  // differences[q] = the weighted sum of query q's products, less Q v: 0 if they are right.
  // Comes after the work that is in the stream.
  void start_compare(const uint32_t* products, const uint32_t* sums, uint32_t query_count,
                     uint32_t* differences, cudaStream_t stream) const;

 private:
  uint64_t weights_at() const { return bucket_count_ * matrix_.pitch(); }
  const uint32_t* weights() const { return words_.data() + weights_at(); }

  const DeviceMatrix& matrix_;
  const size_t bucket_count_;
  DeviceMemory<uint32_t> words_;  // v, of each bucket up to the matrix's pitch, and w
};

}  // namespace blindfuse
