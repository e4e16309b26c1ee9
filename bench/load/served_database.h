// The database at a URL, as a client has it: its current epoch, with all hints on disk.
#pragma once

#include <cstdint>
#include <vector>

#include "bench/load/target.h"
#include "client/database_description.h"
#include "client/hint_cache.h"
#include "client/remote_database.h"

namespace blindfuse::load {

class ServedDatabase {
 public:
  // Hints go to a folder below options.cache.
  ServedDatabase(const Target& target, const Options& options);

  // Brings the hints to the server's current epoch. Those of other epochs may be gone then. Throws
  // the errors of HintCache::sync.
  DatabaseDescription sync();

  // The parts of the hint with which a shard's answers are decoded, of an epoch that sync()
  // returned.
  std::vector<uint8_t> hint(const DatabaseDescription& database, uint32_t shard) const {
    return hints_.read_hint(database, shard);
  }

 private:
  RemoteDatabase remote_;
  HintCache hints_;
};

}  // namespace blindfuse::load
