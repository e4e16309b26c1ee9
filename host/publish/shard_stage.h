// The first stage of a build: every shard's filter and matrix. Shards that did not change keep
// theirs.
#pragma once

#include <cstdint>
#include <vector>

#include "host/database/directory.h"
#include "host/ingest/spool.h"
#include "host/publish/database_writer.h"
#include "host/system/worker_threads.h"
#include "src/system/random.h"

namespace blindfuse {

struct ShardStageResult {
  ShardTable table;               // complete except for the hints of rebuilt shards
  std::vector<uint32_t> rebuilt;  // in order
};

// Writes shards/<sha256>.matrix, unsynced, for every shard whose input differs from the one noted
// in `previous`, or whose files are missing or damaged. previous is empty, or the table of an epoch
// with the same layout, salt and seed. `random` is used once, for a key that determines the seeds
// of all filters. A shard's files depend only on its input, layout, salt and the bytes of `random`.
ShardStageResult build_shards(const DatabaseDirectory& directory, DatabaseWriter& writer,
                              const Layout& layout, const Spool& spool, const ShardTable& previous,
                              const RandomSource& random, WorkerThreads& threads);

}  // namespace blindfuse
