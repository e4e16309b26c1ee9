// Computes responses from queries, both bit sequences, on the device. Two batches take turns: one
// is copied to the device while the other is computed.
#pragma once

#include <cstddef>
#include <memory>

#include "cuda/packing/device_second_level.h"
#include "cuda/pipelines/responder.h"
#include "cuda/scan/scanner.h"
#include "src/engine/engine.h"

namespace blindfuse {

// Scanner and matrix outlive it. Throws ResourceError if there is no room for this many queries.
std::unique_ptr<AnswerPipeline> make_device_answer_pipeline(Scanner& scanner,
                                                            const DeviceMatrix& matrix,
                                                            WireBits bits, size_t slot_count,
                                                            size_t batch_max);

// Takes a given responder. The pipeline gives it batches of up to batch_max. With a second level,
// which may be null, the responder's responses stay on the device, and those of the second level
// are the pipeline's.
std::unique_ptr<AnswerPipeline> make_device_answer_pipeline(
    Scanner& scanner, const DeviceMatrix& matrix, WireBits bits, size_t slot_count,
    size_t batch_max, std::unique_ptr<Responder> responder,
    std::unique_ptr<DeviceSecondLevel> second = nullptr);

}  // namespace blindfuse
