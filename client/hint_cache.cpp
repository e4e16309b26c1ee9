#include "client/hint_cache.h"
#include "client/deadline.h"

#include <blindfuse/errors.h>
#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <set>

#include "src/base/errors.h"
#include "src/protocol/epoch_table.h"
#include "src/system/file.h"

namespace blindfuse {
namespace {

constexpr const char* kManifestName = "manifest.json";
constexpr const char* kTableName = "shards.table";

std::span<const uint8_t> bytes_of(const std::string& text) {
  return {reinterpret_cast<const uint8_t*>(text.data()), text.size()};
}

std::filesystem::path made(const std::filesystem::path& folder) {
  make_cache_folder(folder);
  return folder;
}

void write_whole(const std::filesystem::path& folder, const char* name,
                 std::span<const uint8_t> bytes) {
  PendingFile file(folder);
  file.write(bytes);
  file.commit(name);
}

// Hashes bytes that it just read, while they are still in the processor's caches.
Sha256Digest read_and_hash(const FileDescriptor& file, std::span<uint8_t> bytes,
                           const std::filesystem::path& path) {
  constexpr size_t kPieceBytes = 256 * 1024;
  Sha256 hash;
  for (uint64_t at = 0; at < bytes.size(); at += kPieceBytes) {
    const auto piece = bytes.subspan(at, std::min<uint64_t>(kPieceBytes, bytes.size() - at));
    read_exactly(file, at, piece, path);
    hash.update(piece);
  }
  return hash.finish();
}

std::unordered_set<std::string> hint_files(const DatabaseDescription& database) {
  std::unordered_set<std::string> names;
  for (uint32_t part = 0; part < database.layout().hint_part_count(); ++part) {
    names.insert(hint_file_name(database.epoch_table().hint_hash(part)));
  }
  return names;
}

}  // namespace

std::optional<uint64_t> HintCache::free_bytes_of_disk(const std::filesystem::path& folder) {
  std::error_code error;
  const std::filesystem::space_info space = std::filesystem::space(folder, error);
  // File systems that do not know report a size of 0.
  if (error || space.capacity == 0) return std::nullopt;
  return space.available;
}

HintCache::HintCache(std::filesystem::path folder, FreeBytes free_bytes)
    : folder_(std::move(folder)),
      hints_(made(folder_ / "hints")),
      free_bytes_(std::move(free_bytes)),
      use_lock_(folder_ / "use.lock") {}

std::optional<DatabaseDescription> HintCache::stored() const {
  std::optional<DatabaseDescription> database = described();
  if (database && !missing_hints(*database, none).empty()) database.reset();
  return database;
}

std::optional<DatabaseDescription> HintCache::described() const {
  try {
    const std::string manifest = read_file(folder_ / kManifestName, kManifestBytesMax);
    const Layout layout = parse_manifest(manifest).manifest.layout;
    const std::vector<uint8_t> table =
        read_file_bytes(folder_ / kTableName, epoch_table_bytes(layout));
    return DatabaseDescription(manifest, table);
  } catch (const std::runtime_error&) {
    // There is nothing yet, or it cannot be read or is not ours: the next sync writes it.
    return std::nullopt;
  }
}

DatabaseDescription HintCache::sync(RemoteDatabase& remote, const std::string& manifest_text,
                                    bool verify, const ProgressCallback& progress,
                                    SyncResult& result) {
  const auto start = std::chrono::steady_clock::now();
  Deadline& deadline = remote.deadline();
  const Deadline::Call call(deadline);
  const FileDescriptor lock =
      deadline.stopped([&] { return wait_for_lock(folder_ / "sync.lock", progress); });
  const ParsedManifest wanted = parse_manifest(manifest_text);
  const std::vector<uint8_t> table = table_for(remote, wanted, result);
  DatabaseDescription database(manifest_text, table);
  const Layout& layout = database.layout();

  const std::vector<MissingHint> missing =
      deadline.stopped([&] { return hints_to_fetch(database, verify, progress); });
  if (!missing.empty()) remove_given_up(database);
  check_room(missing.size() * layout.hint_part_bytes());
  HintDownload download(hints_, HintShape(layout));
  result.bytes_fetched += download.fetch(remote, database.epoch(), missing, progress);
  store(manifest_text, table);
  remove_all_but(hint_files(database));

  result.epoch = database.epoch();
  result.shard_count = layout.shard_count;
  result.part_count = layout.hint_part_count();
  result.shards_fetched = static_cast<uint32_t>(missing.size());
  result.hint_bytes = layout.hint_bytes();
  result.seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  return database;
}

std::vector<uint8_t> HintCache::read_hint(const DatabaseDescription& database,
                                          uint32_t shard) const {
  const HintParts parts = database.layout().hint_parts_of(shard);
  const uint64_t part_bytes = database.layout().hint_part_bytes();
  std::vector<uint8_t> hint((uint64_t{parts.last} - parts.first + 1) * part_bytes);
  for (uint32_t part = parts.first; part <= parts.last; ++part) {
    read_part(database, part,
              std::span(hint).subspan((part - parts.first) * part_bytes, part_bytes));
  }
  return hint;
}

void HintCache::read_part(const DatabaseDescription& database, uint32_t part,
                          std::span<uint8_t> bytes) const {
  invariant(bytes.size() == database.layout().hint_part_bytes(), "there is room for one part");
  const Sha256Digest& hash = database.epoch_table().hint_hash(part);
  const std::filesystem::path path = hints_ / hint_file_name(hash);
  try {
    const FileDescriptor file = open_for_reading(path);
    if (file_size(file, path) == bytes.size() && read_and_hash(file, bytes, path) == hash) return;
  } catch (const std::runtime_error&) {
    // The file is missing or unreadable: the cure is the same.
  }
  const bool packed = database.layout().mode() == Mode::kPacked;
  throw CacheError((packed ? "a downloaded mask" : "a downloaded hint") +
                   std::string(" is missing or altered: ") + path.string() +
                   "; fetch all of them again with: blindfuse-client sync --verify URL");
}

std::vector<uint8_t> HintCache::table_for(RemoteDatabase& remote, const ParsedManifest& wanted,
                                          SyncResult& result) const {
  const uint64_t bytes = epoch_table_bytes(wanted.manifest.layout);
  try {
    std::vector<uint8_t> table = read_file_bytes(folder_ / kTableName, bytes);
    if (sha256(table) == wanted.manifest.table) return table;
  } catch (const std::runtime_error&) {
    // There is no table yet, or none that can be read.
  }
  std::vector<uint8_t> table = remote.fetch_table(wanted.epoch, bytes);
  if (sha256(table) != wanted.manifest.table) {
    throw ProtocolError("the table that " + remote.address() +
                        " sent is not the one that its manifest names");
  }
  result.bytes_fetched += table.size();
  return table;
}

std::vector<MissingHint> HintCache::hints_to_fetch(const DatabaseDescription& wanted, bool verify,
                                                   const ProgressCallback& progress) const {
  // A file of the right size may hold anything unless a complete epoch names it: it may not have
  // been on the disk yet when the machine lost power.
  //
  // Without a manifest no epoch was ever complete, and no key was asked for.
  if (!std::filesystem::exists(folder_ / kManifestName))
    return missing_hints(wanted, all, progress);
  const std::optional<DatabaseDescription> complete = described();
  if (!complete) {
    if (!missing_hints(wanted, all, progress).empty()) drop_everything();
    return missing_hints(wanted, none, progress);
  }
  if (!missing_hints(*complete, verify ? all : none, progress).empty()) drop_everything();
  const std::unordered_set<std::string> vouched_for = hint_files(*complete);
  const MustRead must_read = [&](const Sha256Digest& hash) {
    return !vouched_for.contains(hint_file_name(hash));
  };
  return missing_hints(wanted, must_read, progress);
}

void HintCache::drop_everything() const {
  // The manifest goes last: until then, another attempt begins with this again.
  std::vector<std::filesystem::path> files;
  for (const auto& entry : std::filesystem::directory_iterator(hints_)) {
    files.push_back(entry.path());
  }
  files.push_back(folder_ / kManifestName);
  for (const std::filesystem::path& path : files) {
    std::error_code error;
    std::filesystem::remove(path, error);
    if (error) {
      throw ResourceError("cannot remove " + path.string() + ": " + error.message() +
                          "; remove the folder " + folder_.string());
    }
  }
}

std::vector<MissingHint> HintCache::missing_hints(const DatabaseDescription& database,
                                                  const MustRead& must_read,
                                                  const ProgressCallback& progress) const {
  const HintShape shape(database.layout());
  std::vector<MissingHint> missing;
  std::set<Sha256Digest> seen;  // shards or packs with the same content share a part
  for (uint32_t part = 0; part < database.layout().hint_part_count(); ++part) {
    const Sha256Digest& hash = database.epoch_table().hint_hash(part);
    if (!seen.insert(hash).second) continue;
    bool is_there = has_hint(hash, shape);
    if (is_there && must_read(hash)) {
      report_progress(progress, {ClientStage::kCheckingHints, shape.bytes * part,
                                 database.layout().hint_bytes()});
      is_there = sha256(read_file_bytes(hints_ / hint_file_name(hash), shape.bytes)) == hash;
    }
    if (!is_there) missing.push_back({part, hash});
  }
  return missing;
}

// Checks size and form alone: the bytes may be others.
bool HintCache::has_hint(const Sha256Digest& hash, const HintShape& shape) const {
  const std::filesystem::path path = hints_ / hint_file_name(hash);
  const FileDescriptor file(open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK));
  if (!file.is_open() || file_size(file, path) != shape.bytes) return false;
  uint8_t last_byte = 0;
  read_exactly(file, shape.bytes - 1, {&last_byte, 1}, path);
  return last_byte <= shape.last_byte_max;  // or it was downloaded for an epoch of another layout
}

void HintCache::check_room(uint64_t bytes) const {
  const std::optional<uint64_t> free = free_bytes_(hints_);
  if (!free || *free >= bytes) return;
  throw ResourceError("the download takes " + std::to_string(bytes) + " bytes, and the disk of " +
                      hints_.string() + " has room for " + std::to_string(*free) +
                      "; make room, or name another folder with --cache");
}

void HintCache::store(const std::string& manifest, std::span<const uint8_t> table) const {
  // Everything is on disk before the manifest says so; one call for any number of files.
  sync_filesystem(hints_);
  write_whole(folder_, kTableName, table);
  write_whole(folder_, kManifestName, bytes_of(manifest));
}

void HintCache::use(const DatabaseDescription& database) { in_use_ = hint_files(database); }

void HintCache::remove_given_up(const DatabaseDescription& wanted) {
  std::unordered_set<std::string> names = hint_files(wanted);
  for (uint32_t part = 0; part < wanted.layout().hint_part_count(); ++part) {
    names.insert(partial_file_name(wanted.epoch_table().hint_hash(part)));
  }
  if (const auto complete = described()) names.merge(hint_files(*complete));
  names.insert(in_use_.begin(), in_use_.end());
  remove_all_but(names);
}

void HintCache::remove_all_but(const std::unordered_set<std::string>& names) {
  use_lock_.run_alone([&] {
    std::error_code error;  // a file that cannot be removed now is removed after the next sync
    std::vector<std::filesystem::path> old;
    for (const auto& entry : std::filesystem::directory_iterator(hints_, error)) {
      if (!names.contains(entry.path().filename().string())) old.push_back(entry.path());
    }
    for (const std::filesystem::path& path : old) std::filesystem::remove(path, error);
  });
}

}  // namespace blindfuse
