// The query of a canary in the form in which clients send queries, and the response that the CPU
// makes of its product.
#pragma once

#include <span>

#include "src/arithmetic/layout.h"
#include "src/arithmetic/packing_table.h"
#include "src/arithmetic/second_level_spec.h"
#include "src/engine/engine.h"
#include "src/system/random.h"

namespace blindfuse {

// Fills in number of buckets and exchanges of a canary that has words and products. A query has the
// words for each bucket of the layout, the second query three times the words. tables: those of
// every pack, if the layout's responses are packed. The packing keys are then uniform words below
// the packing modulus, drawn from `random`. second: with the polynomials of the epoch, if the
// layout has a second level; what the query brings for it is then drawn, too. thread_count: for
// packing; 0: one a processor. Throws ResourceError if memory is short.
void complete_canary(Canary& canary, const Layout& layout,
                     std::span<const SharedPackingTable> tables, unsigned thread_count,
                     const RandomSource& random, const SecondLevelSpec* second = nullptr);

}  // namespace blindfuse
