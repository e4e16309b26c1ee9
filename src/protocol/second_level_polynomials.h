// The public polynomials of a layout's second level (docs/PROTOCOL.md, section 20).
#pragma once

#include <cstdint>
#include <vector>

#include "src/arithmetic/layout.h"
#include "src/arithmetic/second_level_spec.h"
#include "src/protocol/public_polynomials.h"

namespace blindfuse {

struct SecondLevelPolynomials {
  // layout has a second level.
  SecondLevelPolynomials(const Layout& layout, const ring::PublicPolynomials& polynomials)
      : blocks(polynomials.second_blocks(layout.second_row_count())),
        key_masks(layout.second->key_order > 0 ? polynomials.short_key_masks()
                                               : polynomials.key_masks()) {}

  // Valid as long as this.
  SecondLevelSpec spec(const Layout& layout) const {
    return second_level_spec(layout, blocks, key_masks);
  }

  const std::vector<uint32_t> blocks;     // a2_j for each 2048 rows
  const std::vector<uint32_t> key_masks;  // of the key that packs rows
};

}  // namespace blindfuse
