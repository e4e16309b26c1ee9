// The second level of packed responses, on the processor, after any pipeline of packed responses:
// of each response, the words of the row that its query asks for, packed again
// (docs/PROTOCOL.md, section 20).
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>

#include "src/arithmetic/second_level_spec.h"
#include "src/engine/engine.h"

namespace blindfuse {

// first: a pipeline of the first level, with as many slots, whose responses have word_count words;
// it gets the words and the packing key of each query, and the canary, whose second level is not
// checked. The spec's polynomials need not outlive the call. Queries come as they are sent, with
// keys that check_packing_key does not refuse. Takes 24,960 bytes a slot, and 4 more for each row
// of the spec; for each thread 17 MB, or with a short key of order m 16 KiB for each unit of m, and
// 4 bytes for each word and for each column of a row; and the responses of a batch. thread_count 0:
// one a processor. Throws ResourceError if that is not available.
std::unique_ptr<AnswerPipeline> make_second_level_pipeline(std::unique_ptr<AnswerPipeline> first,
                                                           const SecondLevelSpec& spec,
                                                           uint64_t word_count, size_t slot_count,
                                                           unsigned thread_count);

}  // namespace blindfuse
