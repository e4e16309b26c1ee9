// The hint of one database on disk, in parts: those of its shards, or the masks of its packs.
// Content-addressed, checked, shared by all clients of one user.
//
//   <folder>/manifest.json        the epoch whose hint is all here; written last
//   <folder>/shards.table         its tables of shards and packs
//   <folder>/hints/<sha256>.hint  one part
//   <folder>/sync.lock, use.lock  see cache_folder.h
#pragma once

#include <blindfuse/progress.h>
#include <blindfuse/results.h>

#include <cstdint>
#include <filesystem>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <unordered_set>
#include <vector>

#include "client/cache_folder.h"
#include "client/database_description.h"
#include "client/hint_download.h"
#include "client/remote_database.h"

namespace blindfuse {

// What is fetched never depends on a key: all parts, or all that changed between two epochs. When
// one of an epoch that was complete is missing or altered, all parts are fetched again: it may have
// been noticed by looking up a key of a shard that needs it, and fetching it by itself would tell
// the server that shard, or the few that lie in that pack.
class HintCache {
 public:
  // How many bytes the disk of a folder has room for; nothing when the system does not say.
  using FreeBytes = std::function<std::optional<uint64_t>(const std::filesystem::path&)>;
  static std::optional<uint64_t> free_bytes_of_disk(const std::filesystem::path& folder);

  // Makes the folder when it is missing. Throws InputError when it cannot.
  explicit HintCache(std::filesystem::path folder, FreeBytes free_bytes = free_bytes_of_disk);

  // The epoch whose hint is here, all parts of the right size, or nothing.
  std::optional<DatabaseDescription> stored() const;

  // The hint of this epoch stays here until another one is complete.
  void use(const DatabaseDescription& database);

  // Brings the cache to the epoch of this manifest: fetches the parts that are missing, and removes
  // those of other epochs unless another client reads them. Before that it removes what downloads
  // left that were not completed, except those of this epoch: a server that has a new epoch for
  // every attempt, and completes none, would fill the disk. When the epoch that was complete lacks
  // a part (with `verify` also when the bytes of one are not what they were), throws all parts away
  // and fetches all. Throws what HintDownload does, and ResourceError when the disk has no room.
  DatabaseDescription sync(RemoteDatabase& remote, const std::string& manifest_text, bool verify,
                           const ProgressCallback& progress, SyncResult& result);

  // One part (below Layout::hint_part_count), a bit sequence, into hint_part_bytes bytes, and checked
  // against the table. Throws CacheError.
  void read_part(const DatabaseDescription& database, uint32_t part,
                 std::span<uint8_t> bytes) const;

  // The parts that decoding a record of a shard takes (Layout::hint_parts_of), one after another.
  // Throws CacheError. How long it takes tells whether the system still has these parts in
  // memory: look-ups read hints as CheckedHints does.
  std::vector<uint8_t> read_hint(const DatabaseDescription& database, uint32_t shard) const;

 private:
  std::vector<uint8_t> table_for(RemoteDatabase& remote, const ParsedManifest& wanted,
                                 SyncResult& result) const;
  // What manifest and table say, whatever hints there are.
  std::optional<DatabaseDescription> described() const;
  std::vector<MissingHint> hints_to_fetch(const DatabaseDescription& wanted, bool verify,
                                          const ProgressCallback& progress) const;
  // Which parts have to be read to tell that they are whole; of the others the size says it.
  using MustRead = std::function<bool(const Sha256Digest& hash)>;
  static bool none(const Sha256Digest&) { return false; }
  static bool all(const Sha256Digest&) { return true; }
  std::vector<MissingHint> missing_hints(const DatabaseDescription& database,
                                         const MustRead& must_read,
                                         const ProgressCallback& progress = {}) const;
  bool has_hint(const Sha256Digest& hash, const HintShape& shape) const;
  void drop_everything() const;
  void check_room(uint64_t bytes) const;
  void store(const DatabaseDescription& database) const;
  void remove_given_up(const DatabaseDescription& wanted);
  void remove_all_but(const std::unordered_set<std::string>& names);

  std::filesystem::path folder_;
  std::filesystem::path hints_;
  FreeBytes free_bytes_;
  UseLock use_lock_;
  std::unordered_set<std::string> in_use_;  // files of the epoch that use() was told of
};

}  // namespace blindfuse
