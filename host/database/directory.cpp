#include "host/database/directory.h"

#include <fcntl.h>
#include <sys/stat.h>

#include <algorithm>
#include <sstream>
#include <vector>

#include "src/base/errors.h"
#include "src/base/hex.h"
#include "src/program/program.h"
#include "src/system/file.h"

namespace blindfuse {

namespace {

// InputError when it ends early: it was truncated meanwhile.
bool has_content(const FileDescriptor& file, const std::filesystem::path& path, uint64_t bytes,
                 const Sha256Digest& content) {
  if (file_size(file, path) != bytes) return false;
  Sha256 hash;
  std::vector<uint8_t> block(1 << 20);
  for (uint64_t at = 0; at < bytes; at += block.size()) {
    const auto piece = std::span(block).first(std::min<uint64_t>(block.size(), bytes - at));
    read_exactly(file, at, piece, path);
    hash.update(piece);
  }
  return hash.finish() == content;
}

}  // namespace

bool is_intact(const std::filesystem::path& path, uint64_t bytes, const Sha256Digest& content) try {
  return has_content(open_for_reading(path), path, bytes, content);
} catch (const std::runtime_error&) {
  return false;  // missing, unreadable, or shrinking under our eyes
}

bool is_intact(const OpenFolder& folder, const std::string& name, uint64_t bytes,
               const Sha256Digest& content) try {
  return has_content(folder.open_file(name, O_RDONLY), folder.path() / name, bytes, content);
} catch (const std::runtime_error&) {
  return false;
}

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
  // A digest and an epoch id have the same form.
  return folder != nullptr && entry.file.ends_with(folder->suffix) &&
         is_epoch_id(entry.file.substr(0, entry.file.rfind('.')));
}

std::set<std::string> epoch_entries(const Manifest& manifest, const EpochTable& table) {
  std::set<std::string> names = {kTablesFolder.entry_name(manifest.table),
                                 kSamplesFolder.entry_name(manifest.samples)};
  for (const ShardEntry& shard : table.shards) {
    names.insert(kShardsFolder.entry_name(shard.matrix));
    // A shard has no hint of its own where responses are packed.
    if (table.packs.empty()) names.insert(kHintsFolder.entry_name(shard.hint));
  }
  for (const PackEntry& pack : table.packs) {
    names.insert(kPacksFolder.entry_name(pack.table));
    names.insert(kHintsFolder.entry_name(pack.mask));
  }
  return names;
}

namespace {

namespace fs = std::filesystem;

// A file that is named by its content.
std::vector<uint8_t> read_named(const fs::path& path, const Sha256Digest& content,
                                uint64_t bytes_max) {
  std::vector<uint8_t> bytes = read_file_bytes(path, bytes_max);
  if (sha256(bytes) != content) {
    throw InputError(path.string() + " is altered: its content does not match its hash");
  }
  return bytes;
}

// False says nothing about a path that we may not read.
bool is_there(const fs::path& path) {
  std::error_code error;
  const bool is_there = fs::exists(path, error);
  if (!error) return is_there;
  const std::string message = "cannot read " + path.string() + ": " + error.message();
  if (is_passing_error(error.value())) throw ResourceError(message);
  throw InputError(message);
}

}  // namespace

std::string DatabaseDirectory::table_name(const Sha256Digest& content) {
  return kTablesFolder.file_name(content);
}
std::string DatabaseDirectory::matrix_name(const Sha256Digest& content) {
  return kShardsFolder.file_name(content);
}
std::string DatabaseDirectory::hint_name(const Sha256Digest& content) {
  return kHintsFolder.file_name(content);
}
std::string DatabaseDirectory::pack_name(const Sha256Digest& content) {
  return kPacksFolder.file_name(content);
}
std::string DatabaseDirectory::samples_name(const Sha256Digest& content) {
  return kSamplesFolder.file_name(content);
}

bool DatabaseDirectory::has_manifest() const { return is_there(manifest_file()); }

std::time_t DatabaseDirectory::published_at() const {
  struct stat status {};
  return stat(manifest_file().c_str(), &status) == 0 ? status.st_mtim.tv_sec : 0;
}

std::string DatabaseDirectory::read_manifest_text() const {
  if (!is_there(root_))
    throw InputError(root_.string() + " does not exist; `blindfuse build` makes a database");
  std::error_code error;
  if (!fs::is_directory(root_, error)) {
    errno = error.value();
    if (error) fail_to_read("read", root_);
    throw InputError(root_.string() +
                     " is a file, not a database; `blindfuse build FILE --output DIRECTORY` makes "
                     "one of a file");
  }
  if (!has_manifest()) {
    throw InputError(root_.string() +
                     " is not a database: it has no manifest.json; `blindfuse build` makes one");
  }
  return read_file(manifest_file(), kManifestBytesMax);
}

ParsedManifest DatabaseDirectory::read_manifest() const {
  const std::string text = read_manifest_text();
  try {
    return parse_manifest(text);
  } catch (const NewerFormatError& error) {
    fail_newer(error);
  } catch (const InputError& error) {
    throw InputError(manifest_file().string() + ": " + error.what());
  }
}

void DatabaseDirectory::fail_newer(const NewerFormatError& error) const {
  throw NewerFormatError(root_.string() + " was made by a newer blindfuse; this is " +
                         program_version() + " (" + error.what() + ")");
}

std::vector<uint8_t> DatabaseDirectory::read_table(const Manifest& manifest) const {
  return read_named(tables() / table_name(manifest.table), manifest.table,
                    epoch_table_bytes(manifest.layout));
}

std::string DatabaseDirectory::read_samples(const Manifest& manifest, uint64_t bytes_max) const {
  const std::vector<uint8_t> bytes =
      read_named(samples() / samples_name(manifest.samples), manifest.samples, bytes_max);
  return {bytes.begin(), bytes.end()};
}

std::vector<EpochId> DatabaseDirectory::read_retired(const EpochId& current) const {
  const fs::path path = root_ / kRetiredFile;
  if (!is_there(path)) return {};
  std::istringstream lines(read_file(path, 1 << 20));
  std::vector<EpochId> retired;
  size_t number = 0;
  for (std::string line; std::getline(lines, line);) {
    ++number;
    if (!is_epoch_id(line)) {
      throw InputError(path.string() + " is altered: line " + std::to_string(number) +
                       " is not an epoch id; delete the file, and clients of earlier epochs are " +
                       "told \"unknown\" instead of \"retired\"");
    }
    if (line != current) retired.push_back(line);
  }
  return retired;
}

}  // namespace blindfuse
