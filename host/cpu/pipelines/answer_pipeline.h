// Queries to responses, both bit sequences, for engines that read the host's memory: whoever puts a
// query unpacks it, and one batch is computed at a time.
#pragma once

#include <memory>

#include "src/engine/engine.h"

namespace blindfuse {

// By the engine's multiply(). Takes slot_count * R + batch_max * C words of address space, which
// cost memory only as far as they are used, and the responses of a batch. The engine outlives it.
// Throws ResourceError when there is not even that.
std::unique_ptr<AnswerPipeline> make_cpu_answer_pipeline(Engine& engine, WireBits bits,
                                                         size_t slot_count, size_t batch_max);

}  // namespace blindfuse
