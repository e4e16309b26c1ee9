#include "src/program/config_file.h"

#include <CLI/CLI.hpp>
#include <memory>
#include <set>
#include <sstream>

#include "src/errors.h"
#include "src/system/file.h"

namespace blindfuse {
namespace {

constexpr uint64_t kConfigBytesMax = 1 << 20;

// `free` are the options that nobody has set before the file.
void apply(CLI::App& command, const CLI::ConfigItem& item, const std::set<CLI::Option*>& free,
           const std::string& path) {
  CLI::Option* option = command.get_option_no_throw("--" + item.name);
  // A positional is called by its name alone.
  if (option == nullptr) option = command.get_option_no_throw(item.name);
  if (option == nullptr || !item.parents.empty() || !option->get_configurable()) {
    throw Misuse(path + ": there is no option \"" + item.fullname() + "\"; `" + command.get_name() +
                 " --help` lists them");
  }
  if (!free.contains(option)) return;
  try {
    if (option->get_expected_min() == 0) {
      option->add_result(
          option->get_flag_value(item.name, command.get_config_formatter()->to_flag(item)));
    } else {
      option->add_result(item.inputs);
    }
    option->run_callback();
  } catch (const CLI::ParseError& error) {
    throw Misuse(path + ": " + error.what());
  }
}

}  // namespace

void add_config_option(CLI::App& command) {
  const auto path = std::make_shared<std::string>();
  command
      .add_option("--config", *path,
                  "A file with any of these options, a line each: name = value, without dashes")
      ->configurable(false);
  // After the command line and the environment have been read.
  command.parse_complete_callback([&command, path] {
    if (path->empty()) return;
    std::istringstream text(read_file(*path, kConfigBytesMax));
    std::set<CLI::Option*> free;
    for (CLI::Option* option : command.get_options()) {
      if (option->empty()) free.insert(option);
    }
    for (const CLI::ConfigItem& item : command.get_config_formatter()->from_config(text)) {
      apply(command, item, free, *path);
    }
  });
}

}  // namespace blindfuse
