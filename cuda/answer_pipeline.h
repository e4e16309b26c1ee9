// Packed queries to packed responses on the device. Two batches take turns: one is brought to the
// device while the other is computed.
#pragma once

#include <memory>

#include "cuda/scanner.h"
#include "src/engine.h"

namespace blindfuse {

// Scanner and matrix outlive it. Throws EngineTrouble when there is no room for so many queries.
std::unique_ptr<AnswerPipeline> make_device_answer_pipeline(Scanner& scanner,
                                                            const DeviceMatrix& matrix,
                                                            WireBits bits, size_t slot_count,
                                                            size_t batch_max);

}  // namespace blindfuse
