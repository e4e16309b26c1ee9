#include "host/cpu/packing/vector_ntt_tables.h"

#include "src/arithmetic/ring/ntt.h"

namespace blindfuse {
namespace {

using ring::kDimension;

std::vector<uint32_t> tail(const std::vector<ring::MontgomeryConstant>& factors, size_t lanes) {
  std::vector<uint32_t> made;
  for (size_t tile = 0; tile < kDimension / (lanes * lanes); ++tile) {
    // A level with `blocks` blocks in the polynomial has `of_row` of them in each row of a tile.
    for (size_t of_row = 1; of_row < lanes; of_row *= 2) {
      const size_t blocks = kDimension / lanes * of_row;
      for (size_t block = 0; block < of_row; ++block) {
        for (const bool scaled : {false, true}) {
          for (size_t lane = 0; lane < lanes; ++lane) {
            const ring::MontgomeryConstant& factor =
                factors[blocks + (tile * lanes + lane) * of_row + block];
            made.push_back(scaled ? factor.scaled : factor.value);
          }
        }
      }
    }
  }
  return made;
}

}  // namespace

VectorNttTables::VectorNttTables(const ring::PrimeField& field, size_t lanes)
    : place_of_point_(kDimension), point_of_place_(kDimension) {
  const ring::Twiddles all(field);
  const auto whole = static_cast<std::ptrdiff_t>(kDimension / lanes);
  forward_.assign(all.forward.begin(), all.forward.begin() + whole);
  inverse_.assign(all.inverse.begin(), all.inverse.begin() + whole);
  forward_tail_ = tail(all.forward, lanes);
  inverse_tail_ = tail(all.inverse, lanes);
  for (size_t point = 0; point < kDimension; ++point) {
    const size_t place = ring::Twiddles::orbit_order()[point];
    const size_t tile = place / (lanes * lanes);
    const size_t row = place / lanes % lanes;
    const size_t transposed = (tile * lanes + place % lanes) * lanes + row;
    place_of_point_[point] = static_cast<int32_t>(transposed);
    point_of_place_[transposed] = static_cast<int32_t>(point);
  }
  view_ = {field.modulus(),
           field.inverse_of_modulus(),
           ring::MontgomeryConstant::of(field.reduce(uint64_t{1} << 32), field),
           all.scale,
           forward_.data(),
           inverse_.data(),
           forward_tail_.data(),
           inverse_tail_.data(),
           place_of_point_.data(),
           point_of_place_.data()};
}

}  // namespace blindfuse
