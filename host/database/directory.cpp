#include "host/database/directory.h"

#include <algorithm>
#include <array>
#include <set>
#include <sstream>

#include "src/errors.h"
#include "src/hex.h"
#include "src/system/file.h"

namespace blindfuse {
namespace {

namespace fs = std::filesystem;

constexpr size_t kRetiredMax = 1000;
constexpr const char* kRetiredFile = "retired.txt";

using Names = std::set<std::string>;

// What is in a folder, as far as it can be read.
std::vector<fs::path> entries_of(const fs::path& folder) {
  std::vector<fs::path> entries;
  std::error_code error;
  for (fs::directory_iterator at(folder, error), end; !error && at != end; at.increment(error)) {
    entries.push_back(at->path());
  }
  return entries;
}

void delete_unless_named(const fs::path& folder, const Names& names) {
  for (const fs::path& path : entries_of(folder)) {
    std::error_code ignored;
    if (!names.contains(path.filename().string())) fs::remove(path, ignored);
  }
}

// A file that is named by its content.
std::vector<uint8_t> read_named(const fs::path& path, const Sha256Digest& content,
                                uint64_t bytes_max) {
  std::vector<uint8_t> bytes = read_file_bytes(path, bytes_max);
  if (sha256(bytes) != content) {
    throw BadInput(path.string() + " is altered: its content does not match its hash");
  }
  return bytes;
}

bool is_pending(const fs::path& path) {
  return path.filename().string().starts_with(kTemporaryPrefix);
}

// False is no word on what we may not look at.
bool is_there(const fs::path& path) {
  std::error_code error;
  const bool is_there = fs::exists(path, error);
  if (error) throw BadInput("cannot read " + path.string() + ": " + error.message());
  return is_there;
}

}  // namespace

std::string DatabaseDirectory::table_name(const Sha256Digest& content) {
  return encode_hex(content) + ".table";
}
std::string DatabaseDirectory::matrix_name(const Sha256Digest& content) {
  return encode_hex(content) + ".matrix";
}
std::string DatabaseDirectory::hint_name(const Sha256Digest& content) {
  return encode_hex(content) + ".hint";
}
std::string DatabaseDirectory::pack_name(const Sha256Digest& content) {
  return encode_hex(content) + ".pack";
}
std::string DatabaseDirectory::samples_name(const Sha256Digest& content) {
  return encode_hex(content) + ".json";
}

bool DatabaseDirectory::has_manifest() const { return is_there(manifest_file()); }

std::string DatabaseDirectory::read_manifest_text() const {
  std::error_code ignored;
  if (!is_there(root_)) throw BadInput(root_.string() + " does not exist");
  if (!fs::is_directory(root_, ignored)) throw BadInput(root_.string() + " is not a directory");
  if (!has_manifest()) {
    throw BadInput(root_.string() +
                   " is not a database: it has no manifest.json; `blindfuse build` makes one");
  }
  return read_file(manifest_file(), kManifestBytesMax);
}

ParsedManifest DatabaseDirectory::read_manifest() const {
  const std::string text = read_manifest_text();
  try {
    return parse_manifest(text);
  } catch (const BadInput& error) {
    throw BadInput(manifest_file().string() + ": " + error.what());
  }
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
  std::error_code ignored;
  const fs::path path = root_ / kRetiredFile;
  if (!fs::exists(path, ignored)) return {};
  std::istringstream lines(read_file(path, 1 << 20));
  std::vector<EpochId> retired;
  for (std::string line; std::getline(lines, line);) {
    if (!is_epoch_id(line)) {
      throw BadInput(path.string() + " is altered: a line is no epoch id; delete the file, and " +
                     "clients of earlier epochs hear \"unknown\" instead of \"retired\"");
    }
    if (line != current) retired.push_back(line);
  }
  return retired;
}

void DatabaseDirectory::refuse_foreign_files() const {
  static const Names kOwn = {"manifest.json", "tables",  "shards",     "hints",
                             "packs",         "samples", kRetiredFile, ".lock"};
  std::error_code error;
  if (!fs::is_empty(root_, error) && error) {
    throw BadInput("cannot read " + root_.string() + ": " + error.message());
  }
  for (const fs::path& path : entries_of(root_)) {
    const std::string name = path.filename().string();
    if (kOwn.contains(name) || is_pending(path)) continue;
    throw BadInput(root_.string() + " is not a database: it holds \"" + name +
                   "\"; choose a new or an empty directory");
  }
}

void DatabaseDirectory::publish(const Manifest& manifest,
                                const std::optional<EpochId>& replaced) const {
  sync_filesystem(root_);
  if (replaced) {
    // Written first: a crash in between leaves the current epoch in the list, where readers ignore
    // it.
    std::vector<EpochId> retired = read_retired(*replaced);
    retired.push_back(*replaced);
    const size_t skip = retired.size() > kRetiredMax ? retired.size() - kRetiredMax : 0;
    PendingFile file(root_);
    for (size_t i = skip; i < retired.size(); ++i) file.write(retired[i] + "\n");
    file.commit(kRetiredFile);
  }
  PendingFile file(root_);
  file.write(serialize_manifest(manifest));
  file.commit(manifest_file().filename().string());
}

void DatabaseDirectory::collect_garbage(const std::optional<Manifest>& manifest,
                                        const EpochTable& table) const {
  Names matrices;
  Names hint_files;
  Names pack_files;
  for (const ShardEntry& shard : table.shards) matrices.insert(matrix_name(shard.matrix));
  for (const PackEntry& pack : table.packs) pack_files.insert(pack_name(pack.table));
  const uint32_t hint_parts = manifest ? manifest->layout.hint_part_count() : 0;
  for (uint32_t i = 0; i < hint_parts; ++i) hint_files.insert(hint_name(table.hint_hash(i)));
  delete_unless_named(shards(), matrices);
  delete_unless_named(hints(), hint_files);
  delete_unless_named(packs(), pack_files);
  delete_unless_named(tables(), manifest ? Names{table_name(manifest->table)} : Names{});
  delete_unless_named(samples(), manifest ? Names{samples_name(manifest->samples)} : Names{});
  for (const fs::path& path : entries_of(root_)) {
    std::error_code ignored;
    if (is_pending(path)) fs::remove(path, ignored);
  }
}

void DatabaseDirectory::remove_empty_folders() const {
  for (const fs::path& folder : {tables(), shards(), hints(), packs(), samples()}) {
    std::error_code ignored;
    fs::remove(folder, ignored);
  }
}

}  // namespace blindfuse
