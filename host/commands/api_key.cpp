#include "host/commands/api_key.h"

#include <fcntl.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <memory>
#include <string>

#include "host/server/serving/api_keys.h"
#include "src/errors.h"
#include "src/system/file.h"
#include "src/system/random.h"

namespace blindfuse {
namespace {

// One write, behind what is there: two programs that do this at the same time lose nothing.
void append_line(const std::string& path, const std::string& line) {
  constexpr mode_t kOwnerAlone = 0600;
  const FileDescriptor file(
      open(path.c_str(), O_RDWR | O_APPEND | O_CREAT | O_CLOEXEC, kOwnerAlone));
  // A last line that someone wrote without its end stays a line of its own.
  char last = '\n';
  const off_t size = file.is_open() ? lseek(file.get(), 0, SEEK_END) : 0;
  if (size > 0) (void)!pread(file.get(), &last, 1, size - 1);
  const std::string text = (last == '\n' ? "" : "\n") + line + "\n";
  if (!file.is_open() ||
      write(file.get(), text.data(), text.size()) != static_cast<ssize_t>(text.size())) {
    throw BadInput("cannot add to " + path + ": " + std::strerror(errno));
  }
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
    append_line(options->file, api_key_line(options->name, key));
    std::puts(key.c_str());
  });
}

}  // namespace blindfuse
