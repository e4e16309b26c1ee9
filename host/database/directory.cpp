#include "host/database/directory.h"

#include <sys/stat.h>

#include <sstream>

#include "src/base/errors.h"
#include "src/program/program.h"
#include "src/system/file.h"

namespace blindfuse {
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

// False says nothing about a path that we may not look at.
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
