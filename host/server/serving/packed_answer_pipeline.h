// From bit-packed queries with packing keys to responses that are packed under the clients'
// secrets, for any engine: one product, then the packs, on the host's threads.
#pragma once

#include <memory>
#include <vector>

#include "src/engine.h"
#include "src/layout.h"
#include "src/packing_table.h"

namespace blindfuse {

// layout: of packed responses, and of the engine's matrix; tables: one a pack. Queries' keys have
// been checked by check_packing_keys. Takes slot_count * (R + 12,480) + batch_max * (C + 2048 P)
// words of address space, P the number of packs, which cost memory only as far as they are used,
// and the responses of a batch; where the processor has AMX, from the first large batch on, also 2
// MB for every 16 queries of a batch and, for each thread, 0.8 MB and 0.16 MB for every 16 queries.
// thread_count 0: one a processor. Throws EngineTrouble when there is not even that.
std::unique_ptr<AnswerPipeline> make_packed_answer_pipeline(Engine& engine, const Layout& layout,
                                                            std::vector<SharedPackingTable> tables,
                                                            size_t slot_count, size_t batch_max,
                                                            unsigned thread_count);

}  // namespace blindfuse
