// The products that make the hint: the same vectors times one panel of rows after another, added up
// where the engine computes.
#pragma once

#include <cstdint>
#include <span>

#include "src/engine/batches.h"

namespace blindfuse {

// The vectors are those of the hint, which are too long to be in memory as a whole
// (host/hint/hint.h).
class PanelProducts {
 public:
  virtual ~PanelProducts() = default;

  // The number of rows that suits every engine in one call of add(): a block of the CPU engine's
  // matrix, whose words stay in the last-level cache or near it.
  static constexpr uint64_t kRowsAtOnce = 3072;

  // The place for the next panel's words: room for count vectors of rows_max words, which is free
  // until add(). Throws ResourceError.
  virtual std::span<uint32_t> buffer() = 0;
  // Multiplies the words in the buffer, laid out as `queries` says (its words within the buffer),
  // with these rows. May return before the products are done.
  virtual void add(QueryBatch queries, RowRange rows) = 0;
  // Waits for all products, and returns the sums: count times C words, vector after vector.
  virtual std::span<const uint32_t> finish() = 0;
};

}  // namespace blindfuse
