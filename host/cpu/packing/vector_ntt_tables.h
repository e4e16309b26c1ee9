// The tables that an NTT on vectors of N lanes reads in addition to a polynomial: the twiddle
// factors, in the order in which it uses them.
//
// The levels whose butterflies are N or more apart multiply a whole vector with one factor. For the
// last log2 N levels, tiles of N x N coefficients are transposed, so that these levels, too, work
// on whole vectors. Each lane then has its own factor. Points are gathered from the transposed
// tiles.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "src/arithmetic/ring/prime_field.h"

namespace blindfuse {

// For kernels, which are compiled for other processors and so use only plain memory.
struct VectorNttView {
  uint32_t modulus, inverse_of_modulus;
  ring::MontgomeryConstant two32;           // 2^32 as a factor: takes a division by 2^32 back
  ring::MontgomeryConstant scale;           // 1 / 2048
  const ring::MontgomeryConstant* forward;  // 2048 / N, the first is not used
  const ring::MontgomeryConstant* inverse;
  // For each tile N - 1 pairs of vectors, values and scaled: one pair for the level N / 2 apart,
  // two for the next, and so on.
  const uint32_t* forward_tail;
  const uint32_t* inverse_tail;
  const int32_t* place_of_point;  // in the transposed tiles
  const int32_t* point_of_place;
};

class VectorNttTables {
 public:
  VectorNttTables(const ring::PrimeField& field, size_t lanes);
  const VectorNttView& view() const { return view_; }

 private:
  std::vector<ring::MontgomeryConstant> forward_, inverse_;
  std::vector<uint32_t> forward_tail_, inverse_tail_;
  std::vector<int32_t> place_of_point_, point_of_place_;
  VectorNttView view_;
};

}  // namespace blindfuse
