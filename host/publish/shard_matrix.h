// Makes the matrix of one shard, one block of columns at a time.
#pragma once

#include <cstdint>
#include <functional>
#include <span>

#include "host/ingest/spool.h"
#include "host/publish/filter.h"
#include "src/arithmetic/layout.h"

namespace blindfuse {

// Takes the R bytes of the next column. Columns come in order.
using ColumnSink = std::function<void(std::span<const uint8_t> column)>;

// Columns 0 .. W-1 of a keyword database's shard. For every key, the rows of the key add up to its
// record. `filter` was built from the entries' slot hashes, in the same order. Rows that no key
// determines are zero. Holds 128 R bytes.
void make_keyword_matrix(const Layout& layout, const Filter& filter,
                         std::span<const SpoolEntry> entries, const ColumnSink& sink);

// The same for an index database: row slot_hash of the matrix is the record of the entry.
void make_index_matrix(const Layout& layout, std::span<const SpoolEntry> entries,
                       const ColumnSink& sink);

}  // namespace blindfuse
