// The product of a canary with a matrix. The host computes it while the columns of the matrix pass
// through the host on their way to a device.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

namespace blindfuse {

// The words of a canary for this many rows: uniform multiples of 2^(32 - query_bits), from a seed
// that the system gave this process. Equal arguments give equal words, so that epochs that share
// columns share their products.
std::vector<uint32_t> canary_words(uint64_t row_count, uint32_t query_bits);

// Weights of this many columns, for the check of all products: uniform odd words, drawn from the
// system for each call. They are secret only so that no fault can depend on them.
std::vector<uint32_t> product_weights(uint64_t column_count);

// Multiplies one canary's words with columns. Any thread.
class CanaryProducts {
 public:
  explicit CanaryProducts(std::span<const uint32_t> words);

  // products[c] = sum over r of words[r] * int8(columns[c * R + r]) modulo 2^32, for each of
  // products.size() columns.
  void multiply(std::span<const uint8_t> columns, std::span<uint32_t> products) const;

 private:
  // word = low + 2^16 high modulo 2^32: products of 16 bits, which every processor has on vectors.
  std::vector<int16_t> low_;
  std::vector<int16_t> high_;
};

}  // namespace blindfuse
