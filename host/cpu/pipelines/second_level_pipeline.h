// The second level of packed responses, on the processor, after any pipeline of packed responses:
// of each response, the words of the row that its query asks for, packed once more
// (docs/PROTOCOL.md, section 20).
#pragma once

#include <cstddef>
#include <memory>

#include "src/arithmetic/layout.h"
#include "src/engine/answer_pipeline.h"
#include "src/protocol/public_polynomials.h"

namespace blindfuse {

// first: a pipeline of this layout's first level, with as many slots; it gets the words and the
// packing key of each query, and the canary, which has no second level. layout has a second level.
// Queries come as they are sent, with keys that check_packing_key does not refuse. Takes 0.05 MB a
// slot and, for each thread, 20 MB and 4 bytes a column. thread_count 0: one a processor. Throws
// ResourceError if that is not available.
std::unique_ptr<AnswerPipeline> make_second_level_pipeline(
    std::unique_ptr<AnswerPipeline> first, const Layout& layout,
    const ring::PublicPolynomials& polynomials, size_t slot_count, unsigned thread_count);

}  // namespace blindfuse
