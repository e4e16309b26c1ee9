#include "host/cpu/packing/hint_polynomials.h"

#include <gtest/gtest.h>

#include <random>

#include "src/protocol/public_polynomials.h"
#include "tests/ring/plain_ring.h"

namespace blindfuse {
namespace {

using ring::kDimension;
using ring::plain::Coefficients;
constexpr uint64_t kWords = uint64_t{1} << 32;

// The definition: the sum of a_j times the column's bytes, each at X^-k.
Coefficients plain_hint(const ring::PublicPolynomials& polynomials,
                        const std::vector<int8_t>& column) {
  Coefficients sum{};
  for (uint32_t j = 0; j * kDimension < column.size(); ++j) {
    Coefficients a;
    polynomials.fill_block(j, a);
    Coefficients bytes;
    for (size_t k = 0; k < kDimension; ++k) {
      bytes[k] = static_cast<uint32_t>(static_cast<int32_t>(column[j * kDimension + k]));
    }
    const Coefficients reversed = ring::plain::conjugated(bytes, kWords);
    const Coefficients product = ring::plain::product(a, reversed, kWords);
    for (size_t i = 0; i < kDimension; ++i) sum[i] += product[i];
  }
  return sum;
}

TEST(HintPolynomials, AreTheSumOfTheirDefinition) {
  const ring::PublicPolynomials polynomials(ChaChaKey{4});
  std::mt19937_64 generator(1);
  std::vector<int8_t> column(2 * kDimension, -128);  // the worst bytes, and any
  for (size_t i = kDimension; i < column.size(); ++i) column[i] = static_cast<int8_t>(generator());
  for (const RingKernel& kernel : ring_kernels()) {
    const HintPolynomials hint(polynomials.blocks(2 * kDimension), kernel);
    Coefficients found;
    hint.compute(column, found);
    EXPECT_EQ(found, plain_hint(polynomials, column)) << kernel.name;
  }
}

}  // namespace
}  // namespace blindfuse
