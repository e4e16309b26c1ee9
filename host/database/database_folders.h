// The folders of a database directory, and the names of the files in them. Each file has the
// SHA-256 of its content as its name. Names in a database are relative to its directory.
#pragma once

#include <array>
#include <set>
#include <string>
#include <string_view>

#include "src/protocol/epoch_table.h"
#include "src/protocol/manifest.h"

namespace blindfuse {

struct DatabaseFolder {
  const char* name;
  const char* suffix;  // of its files

  // "SHA256.suffix"
  std::string file_name(const Sha256Digest& content) const;
  // "folder/SHA256.suffix"
  std::string entry_name(const Sha256Digest& content) const;
};

inline constexpr DatabaseFolder kTablesFolder{"tables", ".table"};
inline constexpr DatabaseFolder kShardsFolder{"shards", ".matrix"};
inline constexpr DatabaseFolder kHintsFolder{"hints", ".hint"};
inline constexpr DatabaseFolder kPacksFolder{"packs", ".pack"};
inline constexpr DatabaseFolder kSamplesFolder{"samples", ".json"};
inline constexpr std::array kDatabaseFolders = {kTablesFolder, kShardsFolder, kHintsFolder,
                                                kPacksFolder, kSamplesFolder};

// Null if a database has no folder of that name.
const DatabaseFolder* find_database_folder(std::string_view name);

// A name, split at its last slash. Without a slash the folder is empty.
struct DatabaseEntry {
  std::string_view folder;
  std::string_view file;
};
DatabaseEntry split_entry(std::string_view name);

// Whether it has the form "folder/SHA256.suffix", with a folder's own suffix.
bool is_content_name(std::string_view name);

// The names of all files that an epoch refers to, as far as `table` lists them.
std::set<std::string> epoch_entries(const Manifest& manifest, const EpochTable& table);

}  // namespace blindfuse
