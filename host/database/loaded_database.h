// One epoch, read from its directory into memory, every file checked against its hash.
#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include "host/engine_factory.h"
#include "src/manifest.h"
#include "src/shard_table.h"

namespace blindfuse {

struct LoadedDatabase {
  Manifest manifest;
  EpochId epoch;
  std::string manifest_text;         // as it is on disk, and as clients get it
  std::vector<uint8_t> table_bytes;  // as clients get it
  ShardTable table;
  // Holds the matrix, sealed. R rows, C columns: shard i has columns i W .. (i+1) W - 1.
  std::unique_ptr<Engine> engine;
  std::vector<uint8_t> hints;    // the packed hints of all shards, one after another
  std::vector<EpochId> retired;  // earlier epochs of this directory, the newest last
};

// Throws BadInput, naming the file, when the directory is not a database or a file is missing,
// truncated or altered; EngineTrouble when memory does not hold it, and what
// make_engine throws.
LoadedDatabase load_database(const std::filesystem::path& directory,
                             const EngineMaker& make_engine);

}  // namespace blindfuse
