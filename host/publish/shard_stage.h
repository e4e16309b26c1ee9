// The first stage of a build: every shard's filter and matrix. Shards that did not change keep
// theirs.
#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <vector>

#include "host/database/directory.h"
#include "host/ingest/spool.h"
#include "host/publish/database_writer.h"
#include "host/publish/filter.h"
#include "host/system/worker_threads.h"
#include "src/arithmetic/layout.h"
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

// Takes the columns of one shard's matrix, R bytes each, in their order.
using ColumnSink = std::function<void(std::span<const uint8_t> column)>;

// Makes the columns 0 .. W-1 of a keyword database's shard, one block at a time. For every key, the
// rows of the key add up to its record. `filter` was built from the entries' slot hashes, in the
// same order. Rows that no key determines are zero. Holds 128 R bytes.
void make_keyword_matrix(const Layout& layout, const Filter& filter,
                         std::span<const SpoolEntry> entries, const ColumnSink& sink);

// Makes the matrix of an index database: row slot_hash is the record of the entry.
void make_index_matrix(const Layout& layout, std::span<const SpoolEntry> entries,
                       const ColumnSink& sink);

}  // namespace blindfuse
