// Computes responses from queries, both bit sequences, for engines that read the host's memory. The
// caller that puts a query unpacks it, and one batch is computed at a time.
#pragma once

#include <memory>

#include "src/engine/engine.h"

namespace blindfuse {

// Uses the engine's multiply(). Takes slot_count * R + batch_max * C words of address space, which
// cost memory only when they are used, and the responses of a batch. The engine outlives it. Throws
// ResourceError if that is not available.
std::unique_ptr<AnswerPipeline> make_cpu_answer_pipeline(Engine& engine, WireBits bits,
                                                         size_t slot_count, size_t batch_max);

}  // namespace blindfuse
