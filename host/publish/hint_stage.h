// The second stage of a build in the hint mode: the hints of the shards that were rebuilt.
#pragma once

#include <vector>

#include "host/database/directory.h"
#include "host/publish/database_writer.h"
#include "host/system/worker_threads.h"
#include "src/engine/engine_maker.h"

namespace blindfuse {

// The number of columns of row_count bytes that are in memory at once. It is a multiple of 8: the
// hint of 8 columns packs into whole bytes, so that the hint of a shard can be written in parts.
uint64_t columns_at_once(uint64_t row_count);

// Writes hints/<sha256>.hint, unsynced, for each of `shards`, whose matrices are written, and notes
// its hash in `table`. Many shards share one pass over A. Memory holds at most 8192 columns of the
// matrix, or 1 GiB of it, and their hint twice. If the engines compute on a device, the
// processor has the same columns and checks the hints before they are written. Throws
// DeviceLostError if a hint is wrong.
void build_hints(const DatabaseDirectory& directory, DatabaseWriter& writer, const Layout& layout,
                 const MatrixSeed& seed, const std::vector<uint32_t>& shards,
                 const EngineMaker& engines, WorkerThreads& threads, ShardTable& table);

}  // namespace blindfuse
