#include "host/database/loaded_database.h"

#include <utility>

#include "host/database/directory.h"
#include "src/errors.h"
#include "src/system/file.h"
#include "src/system/progress.h"

namespace blindfuse {
namespace {

// Reads one file of a known size and hash into `bytes`.
void read_checked(const std::filesystem::path& path, const Sha256Digest& expected,
                  std::span<uint8_t> bytes) {
  const FileDescriptor file = open_for_reading(path);
  const uint64_t size = file_size(file, path);
  if (size != bytes.size()) {
    throw BadInput(path.string() + " has " + std::to_string(size) + " bytes; it should have " +
                   std::to_string(bytes.size()));
  }
  read_exactly(file, 0, bytes, path);
  if (sha256(bytes) != expected) {
    throw BadInput(path.string() + " is altered: its content does not match its hash");
  }
}

LoadedDatabase load_epoch(const DatabaseDirectory& directory, std::string manifest_text) {
  LoadedDatabase database;
  database.manifest_text = std::move(manifest_text);
  ParsedManifest parsed = parse_manifest(database.manifest_text);
  database.manifest = parsed.manifest;
  database.epoch = parsed.epoch;
  const Layout& layout = database.manifest.layout;
  database.table_bytes = directory.read_table(database.manifest);
  database.table = parse_shard_table(database.table_bytes, layout.shard_count);
  database.retired = directory.read_retired(database.epoch);
  database.matrix = Matrix(layout.row_count, layout.column_count());
  database.hints.resize(layout.hint_bytes());
  Progress progress("loading", layout.matrix_bytes() + layout.hint_bytes(), Progress::Unit::kBytes);
  for (uint32_t shard = 0; shard < layout.shard_count; ++shard) {
    const ShardEntry& entry = database.table[shard];
    read_checked(
        directory.shards() / DatabaseDirectory::matrix_name(entry.matrix), entry.matrix,
        database.matrix.columns(uint64_t{shard} * layout.record_bytes(), layout.record_bytes()));
    read_checked(directory.hints() / DatabaseDirectory::hint_name(entry.hint), entry.hint,
                 std::span(database.hints)
                     .subspan(shard * layout.shard_hint_bytes(), layout.shard_hint_bytes()));
    progress.advance(layout.shard_matrix_bytes() + layout.shard_hint_bytes());
  }
  return database;
}

}  // namespace

LoadedDatabase load_database(const std::filesystem::path& root) {
  const DatabaseDirectory directory(root);
  for (;;) {
    const std::string manifest_text = directory.read_manifest_text();
    try {
      return load_epoch(directory, manifest_text);
    } catch (const BadInput& error) {
      // A build may have replaced the epoch and deleted its files while we were reading them.
      if (directory.read_manifest_text() != manifest_text) continue;
      throw BadInput(root.string() + ": " + error.what());
    }
  }
}

}  // namespace blindfuse
