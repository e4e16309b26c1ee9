#include "host/commands/commands.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>
#include <CLI/CLI.hpp>
#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstdio>
#include <cstring>
#include <ctime>
#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "host/server/serving/api_keys.h"
#include "src/base/errors.h"
#include "src/program/log.h"
#include "src/program/printable.h"
#include "src/protocol/manifest.h"
#include "src/system/file.h"
#include "src/system/random.h"

namespace blindfuse {
namespace {

namespace fs = std::filesystem;

constexpr mode_t kOwnerAlone = 0600;
constexpr uint64_t kFileBytesMax = 16 << 20;
constexpr size_t kShownBytes = 10;  // "bfk_" and six of 64 digits, which tell keys apart

[[noreturn]] void fail(const fs::path& path, int error) {
  throw InputError("cannot add to " + path.string() + ": " + std::strerror(error));
}

// Ends the last line of `text`, too: an editor may have left that out.
std::string with_line(std::string text, const std::string& line) {
  if (!text.empty() && text.back() != '\n') text += '\n';
  return text + line + '\n';
}

// Writes in one call: a file takes all of it, except where its disk is full.
void write_all(const FileDescriptor& file, const fs::path& path, const std::string& text) {
  const ssize_t written = write(file.get(), text.data(), text.size());
  if (written < 0) fail(path, errno);
  if (static_cast<size_t>(written) != text.size()) fail(path, ENOSPC);
}

// Replaces the file by one with this text, of the same owner and permissions, and returns whether
// it could. A loss of power leaves one of the two, whole. No file changes where the folder cannot
// be written, or where the file is not a regular one or is a mount.
bool replace_file(const fs::path& path, const std::string& text) {
  struct stat old {};
  const bool exists = stat(path.c_str(), &old) == 0;
  if (exists && !S_ISREG(old.st_mode)) return false;
  const fs::path temporary = path.parent_path() / temporary_name();
  const FileDescriptor file(
      open(temporary.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, kOwnerAlone));
  if (!file.is_open()) return false;
  bool is_replaced = false;
  try {
    write_all(file, path, text);
    sync_file(file, path);
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
  sync_file(file, path);
}

// A file of keys, for this program alone: another one that changes it waits. It is locked by a file
// next to it that only its owner can open: a user who can read a folder or a file can lock it for
// good.
class KeyFile {
 public:
  explicit KeyFile(const fs::path& named)
      : path_(target_of(named)),
        lock_path_(path_.parent_path() / ("." + path_.filename().string() + ".lock")) {
    // A line is appended in one write where the folder cannot be written.
    if (access(path_.parent_path().c_str(), W_OK) == 0) wait_for_lock();
  }
  ~KeyFile() {
    if (lock_) unlink(lock_path_.c_str());
  }
  KeyFile(const KeyFile&) = delete;
  KeyFile& operator=(const KeyFile&) = delete;

  // The file's text, which consists of keys; empty when there is no such file, or none that can be
  // read twice, as a pipe. InputError for a file of anything else.
  std::string text() const {
    struct stat status {};
    if (stat(path_.c_str(), &status) != 0 || !S_ISREG(status.st_mode)) return "";
    std::string text = read_text_file(path_, kFileBytesMax);
    try {
      list_api_keys(text, path_);
    } catch (const InputError& error) {
      throw InputError(std::string("this is not a file of API keys: ") + error.what());
    }
    return text;
  }

  // Returns the number of keys that the name had.
  size_t add(const std::string& name, const std::string& line) {
    const std::string before = text();
    if (!replace_file(path_, with_line(before, line))) append_line(path_, line);
    return count_keys(before, name);
  }

  // Returns the number of keys that the name had.
  size_t revoke(const std::string& name) {
    const std::string before = text();
    const size_t count = count_keys(before, name);
    if (count == 0) {
      throw InputError(path_.string() + " has no key of the name " + name +
                       "; --list shows the names");
    }
    if (!replace_file(path_, without_api_keys(before, name))) {
      throw InputError("cannot replace " + path_.string() +
                       ": its folder cannot be written, or it is a mount; take the line out "
                       "yourself");
    }
    return count;
  }

  const fs::path& path() const { return path_; }

 private:
  size_t count_keys(const std::string& text, const std::string& name) const {
    const auto keys = list_api_keys(text, path_);
    return static_cast<size_t>(std::ranges::count(keys, name, &ListedApiKey::name));
  }

  // A symbolic link stays one.
  static fs::path target_of(const fs::path& named) {
    std::error_code error;
    const fs::path path = fs::weakly_canonical(fs::absolute(named), error);
    return error ? fs::absolute(named) : path;
  }

  void wait_for_lock() {
    for (bool is_first = true; !(lock_ = try_lock(lock_path_, kOwnerAlone)); is_first = false) {
      if (is_first) {
        log_info("waiting for another api-key, which holds the lock {}", lock_path_.string());
      }
      std::this_thread::sleep_for(std::chrono::milliseconds(20));
    }
    if (!lock_->is_open()) {
      log_warning("the file system of {} has no locks: let no two api-key commands run at once",
                  path_.string());
    }
  }

  const fs::path path_;
  const fs::path lock_path_;
  std::optional<FileDescriptor> lock_;
};

struct ApiKeyCommand {
  std::string name;
  std::string file;
  bool list = false;
  bool revoke = false;
};

void list_keys(const ApiKeyCommand& command) {
  const std::vector<ListedApiKey> keys =
      list_api_keys(read_text_file(command.file, kFileBytesMax), command.file);
  size_t width = 0;
  for (const ListedApiKey& key : keys) width = std::max(width, key.name.size());
  for (const ListedApiKey& key : keys) {
    std::printf("%-*s  %s\n", static_cast<int>(width), key.name.c_str(),
                key.note.empty() ? "-" : printable(key.note).c_str());
  }
}

void run_api_key(const ApiKeyCommand& command) {
  if (command.list != command.name.empty()) {
    throw UsageError(command.list ? "--list takes no name"
                                  : "missing NAME: name the key, or give --list");
  }
  if (command.list) return list_keys(command);
  KeyFile file(command.file);
  if (command.revoke) {
    const size_t count = file.revoke(command.name);
    std::printf("%s of %s revoked; a running server reads the file again on SIGHUP\n",
                counted(count, "key").c_str(), command.name.c_str());
    return;
  }
  const std::string key = make_api_key(fill_from_system);
  const auto now = static_cast<uint64_t>(std::time(nullptr));
  const size_t before =
      file.add(command.name, api_key_line(command.name, key) + " " + utc_text(now) + " " +
                                 key.substr(0, kShownBytes));
  std::puts(key.c_str());
  if (before == 0) return;
  std::fprintf(stderr,
               "blindfuse: %s has %s now, and all of them work; --revoke takes all of them out\n",
               command.name.c_str(), counted(before + 1, "key").c_str());
}

}  // namespace

void add_api_key_command(CLI::App& program) {
  auto options = std::make_shared<ApiKeyCommand>();
  CLI::App* command = program.add_subcommand(
      "api-key",
      "Make, list and revoke API keys. A new key is printed once, and its hash is added to a file "
      "for serve --api-keys.");
  command->footer(
      "Examples:\n  blindfuse api-key alice --file keys.txt\n"
      "  blindfuse api-key --list --file keys.txt\n"
      "  blindfuse api-key alice --revoke --file keys.txt");
  command->add_option("name", options->name, "Name of the key's holder; logs show it");
  command->add_option("--file", options->file, "File of API keys; created if missing")
      ->type_name("PATH")
      ->required();
  CLI::Option* list =
      command->add_flag("--list", options->list,
                        "Print the keys in the file: name, when it was made, and how it begins");
  command->add_flag("--revoke", options->revoke, "Take all keys of the name out of the file")
      ->excludes(list);
  command->callback([options] { run_api_key(*options); });
}

}  // namespace blindfuse
