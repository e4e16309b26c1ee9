#include "host/database/database_folders.h"

#include <algorithm>

#include "src/base/hex.h"

namespace blindfuse {

std::string DatabaseFolder::file_name(const Sha256Digest& content) const {
  return encode_hex(content) + suffix;
}

std::string DatabaseFolder::entry_name(const Sha256Digest& content) const {
  return std::string(name) + "/" + file_name(content);
}

const DatabaseFolder* find_database_folder(std::string_view name) {
  const auto* found = std::ranges::find(kDatabaseFolders, name, &DatabaseFolder::name);
  return found == kDatabaseFolders.end() ? nullptr : found;
}

DatabaseEntry split_entry(std::string_view name) {
  const size_t slash = name.rfind('/');
  if (slash == std::string_view::npos) return {{}, name};
  return {name.substr(0, slash), name.substr(slash + 1)};
}

bool is_content_name(std::string_view name) {
  const DatabaseEntry entry = split_entry(name);
  const DatabaseFolder* folder = find_database_folder(entry.folder);
  // A digest and an epoch id are written alike.
  return folder != nullptr && entry.file.ends_with(folder->suffix) &&
         is_epoch_id(entry.file.substr(0, entry.file.rfind('.')));
}

std::set<std::string> epoch_entries(const Manifest& manifest, const EpochTable& table) {
  std::set<std::string> names = {kTablesFolder.entry_name(manifest.table),
                                 kSamplesFolder.entry_name(manifest.samples)};
  for (const ShardEntry& shard : table.shards) {
    names.insert(kShardsFolder.entry_name(shard.matrix));
    // Where responses are packed a shard has no hint of its own.
    if (table.packs.empty()) names.insert(kHintsFolder.entry_name(shard.hint));
  }
  for (const PackEntry& pack : table.packs) {
    names.insert(kPacksFolder.entry_name(pack.table));
    names.insert(kHintsFolder.entry_name(pack.mask));
  }
  return names;
}

}  // namespace blindfuse
