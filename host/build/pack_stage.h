// The second stage of a build where responses are packed: packing tables and masks.
#pragma once

#include <cstdint>
#include <vector>

#include "host/build/database_writer.h"
#include "host/database/directory.h"
#include "host/engine_factory.h"
#include "host/worker_threads.h"
#include "src/epoch_table.h"

namespace blindfuse {

struct PackStageResult {
  std::vector<PackEntry> packs;  // all, in order
  uint32_t rebuilt = 0;          // of them
};

// Writes packs/<sha256>.pack and hints/<sha256>.hint, the bit-packed mask, unsynced, for every pack
// of columns that belong to a shard whose matrix differs from the one noted in `previous`, or whose
// files are missing or damaged. The matrices of `shards` are written. previous: empty, or the table
// of an epoch with the same layout and seed. By engines from this maker where they make packs
// themselves, otherwise by the host's threads (host/build/pack_batches.h, where memory is told).
PackStageResult build_packs(const DatabaseDirectory& directory, DatabaseWriter& writer,
                            const Layout& layout, const MatrixSeed& seed, const ShardTable& shards,
                            const EpochTable& previous, const EngineMaker& make_engine,
                            WorkerThreads& threads);

}  // namespace blindfuse
