// From queries, bit sequences with packing keys, to responses that are packed under the clients'
// secrets, for engines that read the host's memory: one product, then the packs.
#pragma once

#include <memory>
#include <span>

#include "host/system/worker_threads.h"
#include "src/arithmetic/packing_table.h"
#include "src/engine/engine.h"

namespace blindfuse {

// By the engine's multiply() and, for the packs, by `threads`, which may be the engine's own; both
// outlive it. tables: one for every 2048 columns, and for what is left. Queries' keys have been
// checked by check_packing_keys. Takes slot_count * (R + 12,480) + batch_max * (C + 2048 P) words
// of address space, P the number of packs, which cost memory only as far as they are used, and the
// responses of a batch; where the processor has AMX, from the first large batch on, also 2 MB for
// every 16 queries of a batch and, for each thread, 0.8 MB and 0.16 MB for every 16 queries. Throws
// ResourceError when there is not even that.
std::unique_ptr<AnswerPipeline> make_cpu_packed_answer_pipeline(
    Engine& engine, WireBits bits, std::span<const SharedPackingTable> tables, size_t slot_count,
    size_t batch_max, WorkerThreads& threads);

}  // namespace blindfuse
