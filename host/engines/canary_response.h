// The query of a canary as clients send theirs, and its response as the CPU makes it of the
// product.
#pragma once

#include <span>

#include "src/arithmetic/layout.h"
#include "src/arithmetic/packing_table.h"
#include "src/engine/canary.h"
#include "src/system/random.h"

namespace blindfuse {

// Fills in query, response and seed of a canary that has words and products. tables: of every pack,
// where the layout's responses are packed; the packing keys are then uniform words below the
// packing modulus, of `random` like the seed. thread_count: of packing; 0: one a processor. Throws
// ResourceError when memory is short.
void complete_canary(Canary& canary, const Layout& layout,
                     std::span<const SharedPackingTable> tables, unsigned thread_count,
                     const RandomSource& random);

}  // namespace blindfuse
