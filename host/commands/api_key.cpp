#include "host/commands/api_key.h"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <memory>
#include <string>

#include "host/server/serving/api_keys.h"
#include "src/base/errors.h"
#include "src/system/file.h"
#include "src/system/random.h"

namespace blindfuse {
namespace {

namespace fs = std::filesystem;

constexpr mode_t kOwnerAlone = 0600;
constexpr uint64_t kFileBytesMax = 16 << 20;

[[noreturn]] void fail(const fs::path& path, int error) {
  throw InputError("cannot add to " + path.string() + ": " + std::strerror(error));
}

// Also the last line of `text` ends, where whoever wrote it left that out.
std::string with_line(std::string text, const std::string& line) {
  if (!text.empty() && text.back() != '\n') text += '\n';
  return text + line + '\n';
}

// In one write: a file takes all of it, except where its disk is full.
void write_all(const FileDescriptor& file, const fs::path& path, const std::string& text) {
  const ssize_t written = write(file.get(), text.data(), text.size());
  if (written < 0) fail(path, errno);
  if (static_cast<size_t>(written) != text.size()) fail(path, ENOSPC);
}

// Whether the file could be replaced by one with a line more, of the same owner and permissions. A
// loss of power leaves one of the two, whole. No file changes where the folder cannot be written,
// or where the file is not a regular one or is a mount.
bool replace_with_line(const fs::path& path, const std::string& line) {
  struct stat old {};
  const bool exists = stat(path.c_str(), &old) == 0;
  if (exists && !S_ISREG(old.st_mode)) return false;
  const std::string text = with_line(exists ? read_file(path, kFileBytesMax) : "", line);
  const fs::path temporary = path.parent_path() / temporary_name();
  const FileDescriptor file(
      open(temporary.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, kOwnerAlone));
  if (!file.is_open()) return false;
  bool is_replaced = false;
  try {
    write_all(file, path, text);
    if (fsync(file.get()) != 0) fail(path, errno);
    const bool is_like_the_old = !exists || (fchown(file.get(), old.st_uid, old.st_gid) == 0 &&
                                             fchmod(file.get(), old.st_mode & 07777) == 0);
    is_replaced = is_like_the_old && rename(temporary.c_str(), path.c_str()) == 0;
  } catch (...) {
    unlink(temporary.c_str());
    throw;
  }
  if (is_replaced) {
    sync_folder(path.parent_path());
  } else {
    unlink(temporary.c_str());
  }
  return is_replaced;
}

void append_line(const fs::path& path, const std::string& line) {
  const FileDescriptor file(
      open(path.c_str(), O_RDWR | O_APPEND | O_CREAT | O_CLOEXEC, kOwnerAlone));
  if (!file.is_open()) fail(path, errno);
  std::string last = "\n";
  const off_t size = lseek(file.get(), 0, SEEK_END);
  if (size > 0 && pread(file.get(), last.data(), 1, size - 1) != 1) fail(path, errno);
  write_all(file, path, (last == "\n" ? "" : "\n") + line + "\n");
  // A pipe has nothing to sync.
  if (fsync(file.get()) != 0 && errno != EINVAL && errno != EROFS) fail(path, errno);
}

void add_line(const fs::path& named, const std::string& line) {
  // A symbolic link stays one.
  std::error_code error;
  fs::path path = fs::weakly_canonical(fs::absolute(named), error);
  if (error) path = fs::absolute(named);
  // Two programs that do this at the same time wait for each other.
  const FileDescriptor folder(open(path.parent_path().c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (folder.is_open()) flock(folder.get(), LOCK_EX);
  if (!replace_with_line(path, line)) append_line(path, line);
}

}  // namespace

void add_api_key_command(CLI::App& program) {
  struct Options {
    std::string name;
    std::string file;
  };
  auto options = std::make_shared<Options>();
  CLI::App* command = program.add_subcommand(
      "api-key",
      "Make an API key. Prints the key once, and adds its hash to a file for serve --api-keys.");
  command->footer("Example:\n  blindfuse api-key alice --file keys.txt");
  command->add_option("name", options->name, "Who gets the key; logs show this name")->required();
  command->add_option("--file", options->file, "File of API keys; created if missing")
      ->type_name("FILE")
      ->required();
  command->callback([options] {
    const std::string key = make_api_key(fill_from_system);
    add_line(options->file, api_key_line(options->name, key));
    std::puts(key.c_str());
  });
}

}  // namespace blindfuse
