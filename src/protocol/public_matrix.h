// The public matrix A in Z_q^(n x R), expanded from a seed in panels of 64 columns
// (docs/PROTOCOL.md, section 6).
#pragma once

#include <array>
#include <cstdint>
#include <span>

#include "src/arithmetic/lwe_params.h"

namespace blindfuse {

using MatrixSeed = std::array<uint8_t, 32>;

class PublicMatrix {
 public:
  PublicMatrix(const MatrixSeed& seed, uint32_t dimension);

  const MatrixSeed& seed() const { return seed_; }
  uint32_t dimension() const { return dimension_; }
  size_t panel_words() const { return size_t{dimension_} * kPanelRows; }

  // Writes panel j: A[k][64 j + i] at panel[64 k + i]. panel has panel_words() words. Any thread,
  // in any order.
  void fill_panel(uint64_t j, std::span<uint32_t> panel) const;

 private:
  MatrixSeed seed_;
  uint32_t dimension_;
};

}  // namespace blindfuse
