// The hint of one database on disk, in parts: those of its shards, or the masks of its packs. The
// files are named by their contents and checked. All clients of one user share them.
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

// The parts that are fetched never depend on a key: all parts, or all that changed between two
// epochs. If a part of an epoch that was complete is missing or altered, all parts are fetched
// again. A look-up of a key in a shard that needs the part may have found this. Fetching the part
// alone would reveal that shard to the server, or the few shards in that pack.
class HintCache {
 public:
  // The free bytes on the disk of a folder. Nothing if the system does not report them.
  using FreeBytes = std::function<std::optional<uint64_t>(const std::filesystem::path&)>;
  static std::optional<uint64_t> free_bytes_of_disk(const std::filesystem::path& folder);

  // Makes the folder if it is missing. Throws InputError if that fails.
  explicit HintCache(std::filesystem::path folder, FreeBytes free_bytes = free_bytes_of_disk);

  // The epoch whose hint is here, with all parts of the right size, or nothing.
  std::optional<DatabaseDescription> stored() const;

  // The hint of this epoch stays here until another one is complete.
  void use(const DatabaseDescription& database);

  // Brings the cache to the epoch of this manifest. Fetches the missing parts, and removes those of
  // other epochs unless another client reads them. Before that, removes incomplete downloads except
  // those of this epoch: otherwise a server that offers a new epoch for every attempt, and
  // completes none, would fill the disk. If the epoch that was complete lacks a part (with
  // `verify`, also if the bytes of one have changed), discards all parts and fetches all. Throws
  // the errors of HintDownload, and ResourceError if the disk has no room.
  DatabaseDescription sync(RemoteDatabase& remote, const std::string& manifest_text, bool verify,
                           const ProgressCallback& progress, SyncResult& result);

  // Reads one part (below Layout::hint_part_count), a bit sequence, into hint_part_bytes bytes, and
  // checks it against the table. Throws CacheError.
  void read_part(const DatabaseDescription& database, uint32_t part,
                 std::span<uint8_t> bytes) const;

  // The parts that decoding a record of a shard takes (Layout::hint_parts_of), one after another.
  // Throws CacheError. The time reveals whether the system still has these parts in memory.
  // Look-ups therefore read hints through CheckedHints.
  std::vector<uint8_t> read_hint(const DatabaseDescription& database, uint32_t shard) const;

 private:
  std::vector<uint8_t> table_for(RemoteDatabase& remote, const ParsedManifest& wanted,
                                 SyncResult& result) const;
  // The description by manifest and table, whatever hints there are.
  std::optional<DatabaseDescription> described() const;
  std::vector<MissingHint> hints_to_fetch(const DatabaseDescription& wanted, bool verify,
                                          const ProgressCallback& progress) const;
  // The parts that have to be read to check them. The size suffices for the others.
  using MustRead = std::function<bool(const Sha256Digest& hash)>;
  static bool none(const Sha256Digest&) { return false; }
  static bool all(const Sha256Digest&) { return true; }
  std::vector<MissingHint> missing_hints(const DatabaseDescription& database,
                                         const MustRead& must_read,
                                         const ProgressCallback& progress = {}) const;
  bool has_hint(const Sha256Digest& hash, const HintShape& shape) const;
  void drop_everything() const;
  void check_room(uint64_t bytes) const;
  void store(const std::string& manifest, std::span<const uint8_t> table) const;
  void remove_given_up(const DatabaseDescription& wanted);
  void remove_all_but(const std::unordered_set<std::string>& names);

  std::filesystem::path folder_;
  std::filesystem::path hints_;
  FreeBytes free_bytes_;
  UseLock use_lock_;
  std::unordered_set<std::string> in_use_;  // files of the epoch that use() was told of
};

}  // namespace blindfuse
