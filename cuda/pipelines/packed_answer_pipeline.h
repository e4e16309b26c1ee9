// Computes responses that are packed under the clients' secrets, from queries with a packing key,
// entirely on the device. With a second level, these are lowered to the words of one row.
#pragma once

#include <memory>
#include <span>

#include "cuda/pipelines/batch_sizes.h"
#include "cuda/scan/scanner.h"
#include "src/arithmetic/packing_table.h"
#include "src/engine/engine.h"

namespace blindfuse {

// tables: one for every 1024 columns of the matrix, and one for the remaining columns; copied to
// the device. A query has its bit sequence and, after it, a packing key (ring::kKeyBytes). second:
// null, or as for Engine::make_packed_answer_pipeline, like bucket_count. Scanner and matrix
// outlive it. Throws ResourceError, which names the bytes needed and the bytes free, if memory is
// too small for the tables and for this many queries.
std::unique_ptr<AnswerPipeline> make_device_packed_answer_pipeline(
    Scanner& scanner, const DeviceMatrix& matrix, WireBits bits,
    std::span<const SharedPackingTable> tables, size_t slot_count, size_t batch_max,
    const SecondLevelSpec* second, size_t bucket_count);

// Bytes of the device's memory that it takes, most of them for the tables.
uint64_t packed_pipeline_bytes(const BatchShape& shape, size_t pack_count, size_t batch_max,
                               const SecondLevelSpec* second);

}  // namespace blindfuse
