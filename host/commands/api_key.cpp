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
#include "src/errors.h"
#include "src/system/file.h"
#include "src/system/random.h"

namespace blindfuse {
namespace {

[[noreturn]] void fail(const std::string& path) {
  throw BadInput("cannot add to " + path + ": " + std::strerror(errno));
}

// The file under a lock, so that two programs that add to it lose nothing. Another may have put a
// new file in its place meanwhile, which is then the one.
FileDescriptor open_locked(const std::string& path) {
  constexpr mode_t kOwnerAlone = 0600;
  for (;;) {
    FileDescriptor file(open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, kOwnerAlone));
    struct stat opened {};
    struct stat current {};
    if (!file.is_open() || flock(file.get(), LOCK_EX) != 0 || fstat(file.get(), &opened) != 0) {
      fail(path);
    }
    if (stat(path.c_str(), &current) == 0 && current.st_ino == opened.st_ino) return file;
  }
}

// Puts a file in its place that has one line more: whole, also after the machine has lost power,
// since one bad line would keep out all who have a key.
void add_line(const std::string& name, const std::string& line) {
  constexpr uint64_t kFileBytesMax = uint64_t{64} << 20;
  const FileDescriptor old_file = open_locked(name);
  // Of a symbolic link, what it leads to.
  const std::filesystem::path path = std::filesystem::canonical(name);
  std::string text = read_file(path, kFileBytesMax);
  // A last line that someone wrote without its end stays a line of its own.
  if (!text.empty() && text.back() != '\n') text += '\n';
  text += line + '\n';
  struct stat status {};
  std::filesystem::path temporary;
  BufferedWriter writer(create_temporary_file(path.parent_path(), temporary), path);
  const int file = writer.file().get();
  try {
    writer.write({reinterpret_cast<const uint8_t*>(text.data()), text.size()});
    writer.flush();
    const bool is_done = fstat(old_file.get(), &status) == 0 &&
                         (fchown(file, status.st_uid, status.st_gid) == 0 || errno == EPERM) &&
                         fchmod(file, status.st_mode & 07777) == 0 && fsync(file) == 0 &&
                         rename(temporary.c_str(), path.c_str()) == 0;
    if (!is_done) fail(name);
  } catch (...) {
    unlink(temporary.c_str());
    throw;
  }
  sync_folder(path.parent_path());
}

}  // namespace

void add_api_key_command(CLI::App& program) {
  struct Options {
    std::string name;
    std::string file;
  };
  auto options = std::make_shared<Options>();
  CLI::App* command = program.add_subcommand(
      "api-key", "Make an API key: prints it, once, and keeps its hash in a file for `serve`");
  command->add_option("name", options->name, "Whose key it is, for the log")->required();
  command->add_option("--file", options->file, "The file of keys, made if there is none")
      ->required();
  command->callback([options] {
    const std::string key = make_api_key(fill_from_system);
    add_line(options->file, api_key_line(options->name, key));
    std::puts(key.c_str());
  });
}

}  // namespace blindfuse
