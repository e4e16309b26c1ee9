// The second stage of a build for packed responses: packing tables and masks.
#pragma once

#include <cstdint>
#include <vector>

#include "host/database/directory.h"
#include "host/publish/database_writer.h"
#include "host/system/worker_threads.h"
#include "src/engine/engine_maker.h"
#include "src/protocol/epoch_table.h"

namespace blindfuse {

struct PackStageResult {
  std::vector<PackEntry> packs;  // all, in order
  uint32_t rebuilt = 0;          // of them
};

// Writes packs/<sha256>.pack and hints/<sha256>.hint, the mask, unsynced. It does so for every pack
// with columns of a shard whose matrix differs from the one noted in `previous`, and for every pack
// whose files are missing or damaged. The matrices of `shards` are written. previous: empty, or the
// table of an epoch with the same layout and seed. `engines` determines how many packs are made at
// a time, and their memory.
PackStageResult build_packs(const DatabaseDirectory& directory, DatabaseWriter& writer,
                            const Layout& layout, const MatrixSeed& seed, const ShardTable& shards,
                            const EpochTable& previous, const EngineMaker& engines,
                            WorkerThreads& threads);

}  // namespace blindfuse
