#include "host/cpu/packing/hint_polynomials.h"

#include "src/base/errors.h"

namespace blindfuse {

using ring::kDimension;

HintPolynomials::HintPolynomials(std::span<const uint32_t> blocks, const RingKernel& kernel)
    : products_(make_ntt(kernel, ring::kPackingModulus), make_ntt(kernel, ring::kSecondModulus)) {
  invariant(blocks.size() % kDimension == 0 && blocks.size() <= (1u << 24),
            "rows are blocks of 2048, 2^24 at most");
  blocks_.resize(blocks.size() / kDimension);
  for (size_t j = 0; j < blocks_.size(); ++j) {
    products_.forward_words(ring::Polynomial(blocks.data() + j * kDimension, kDimension),
                            blocks_[j]);
    // a(1/X) D(X) is a(X) D(1/X) with X and 1/X exchanged, which is done once, at the end.
    ring::CrtNtt::conjugate(blocks_[j]);
  }
}

void HintPolynomials::compute(std::span<const int8_t> column, ring::MutablePolynomial hint) const {
  invariant(column.size() == row_count(), "a column has row_count bytes");
  ring::CrtResidues sum{};
  ring::CrtResidues values;
  for (size_t j = 0; j < blocks_.size(); ++j) {
    products_.forward_small(
        std::span<const int8_t, kDimension>(column.data() + j * kDimension, kDimension), values);
    products_.add_product(blocks_[j], values, sum);
  }
  ring::CrtNtt::conjugate(sum);
  products_.to_words(sum, hint);
}

}  // namespace blindfuse
