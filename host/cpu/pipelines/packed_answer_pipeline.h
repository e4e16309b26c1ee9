// Computes packed responses from queries, which are bit sequences with a packing key, for engines
// that read the host's memory: the product, then the packs. The responses are packed under the
// clients' secrets.
#pragma once

#include <memory>
#include <span>

#include "host/system/worker_threads.h"
#include "src/arithmetic/packing_table.h"
#include "src/engine/engine.h"

namespace blindfuse {

// Uses the engine's multiply_buckets() and, for the packs, `threads`, which may be the engine's
// own. Both outlive it. tables: one for every 1024 columns, and one for the remaining columns.
// Queries' keys have been checked by check_packing_key. bucket_count (B): as for
// Engine::make_packed_answer_pipeline. Takes slot_count * (B R + 6,240) + batch_max * (C + 2048 P)
// words of address space, with P the number of packs. They cost memory only when they are used.
// Takes also the responses of a batch. If the processor has AMX, takes from the first large batch
// on also 2 MB for every 16 queries of a batch and, for each thread, 0.8 MB and 0.16 MB for every
// 16 queries. Throws ResourceError if that is not available.
std::unique_ptr<AnswerPipeline> make_cpu_packed_answer_pipeline(
    Engine& engine, WireBits bits, std::span<const SharedPackingTable> tables, size_t slot_count,
    size_t batch_max, WorkerThreads& threads, size_t bucket_count = 1);

}  // namespace blindfuse
