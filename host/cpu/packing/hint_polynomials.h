// The hint of packed responses: h_c = sum over blocks j of a_j D_j,c(1/X) modulo 2^32, one
// polynomial for each column c. The coefficients of D_j,c are the column's bytes in rows 2048 j ..
// 2048 j + 2047. With b_j = s a_j + ..., the constant term of s h_c is the secret's share of the
// response word of column c.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "host/cpu/packing/ring_kernels.h"
#include "src/arithmetic/ring/ntt.h"

namespace blindfuse {

class HintPolynomials {
 public:
  // blocks: the words of the public polynomials of all blocks of rows, one a row. Their number is a
  // multiple of 2048, at most 2^24. Keeps the blocks' NTTs: 8 bytes a row.
  explicit HintPolynomials(std::span<const uint32_t> blocks,
                           const RingKernel& kernel = ring_kernels().front());

  uint32_t row_count() const { return static_cast<uint32_t>(blocks_.size() * ring::kDimension); }

  // column: row_count() bytes of the matrix. Any thread.
  void compute(std::span<const int8_t> column, ring::MutablePolynomial hint) const;

 private:
  ring::CrtNtt products_;
  std::vector<ring::CrtResidues> blocks_;
};

}  // namespace blindfuse
