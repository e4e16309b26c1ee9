// The hints of one database on disk: content-addressed, checked, shared by all clients of one user.
//
//   <folder>/manifest.json        the epoch whose hints are all here; written last
//   <folder>/shards.table         its shard table
//   <folder>/hints/<sha256>.hint  one shard's hint
//   <folder>/sync.lock, use.lock  see cache_folder.h
#pragma once

#include <blindfuse/progress.h>
#include <blindfuse/results.h>

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "client/cache_folder.h"
#include "client/database_description.h"
#include "client/hint_download.h"
#include "client/remote_database.h"

namespace blindfuse {

// What is fetched never depends on a key: all hints, or all that changed between two epochs. When
// one of an epoch that was complete is missing or altered, all hints are fetched again: it may have
// been noticed by looking up a key of its shard, and fetching it by itself would tell the server
// that shard.
class HintCache {
 public:
  // Makes the folder when it is missing. Throws BadInput when it cannot.
  explicit HintCache(std::filesystem::path folder);

  // The epoch whose hints are here, all of the right size, or nothing.
  std::optional<DatabaseDescription> stored() const;

  // Brings the cache to the epoch of this manifest: fetches the hints that are missing, and removes
  // those of other epochs unless another client reads them. When the epoch that was complete lacks
  // a hint (with `verify` also when the bytes of one are not what they were), throws all hints away
  // and fetches all. Throws what HintDownload does, and EngineTrouble when the disk has no room.
  DatabaseDescription sync(RemoteDatabase& remote, const std::string& manifest_text, bool verify,
                           const ProgressCallback& progress, SyncResult& result);

  // The packed hint of a shard, checked against the table. Throws AlteredCache.
  std::vector<uint8_t> read_hint(const DatabaseDescription& database, uint32_t shard) const;

 private:
  std::vector<uint8_t> table_for(RemoteDatabase& remote, const ParsedManifest& wanted,
                                 SyncResult& result) const;
  // What manifest and table say, whatever hints there are.
  std::optional<DatabaseDescription> described() const;
  std::vector<MissingHint> hints_to_fetch(const DatabaseDescription& wanted, bool verify,
                                          const ProgressCallback& progress) const;
  std::vector<MissingHint> missing_hints(const DatabaseDescription& database, bool verify,
                                         const ProgressCallback& progress = {}) const;
  bool has_hint(const Sha256Digest& hash, const HintShape& shape, bool verify) const;
  void drop_everything() const;
  void check_room(uint64_t bytes) const;
  void store(const DatabaseDescription& database) const;
  void remove_unreferenced(const DatabaseDescription& database);

  std::filesystem::path folder_;
  std::filesystem::path hints_;
  UseLock use_lock_;
};

}  // namespace blindfuse
