#include "src/program/config_file.h"

#include <CLI/CLI.hpp>
#include <algorithm>
#include <memory>
#include <set>
#include <sstream>
#include <string>

#include "src/base/errors.h"
#include "src/program/command_line.h"
#include "src/program/help_formatter.h"
#include "src/system/file.h"

namespace blindfuse {
namespace {

constexpr uint64_t kConfigBytesMax = 1 << 20;

// Whether a value of the line begins with a quote that does not come again.
bool has_open_quote(const std::string& values) {
  char quote = 0;
  bool at_begin = true;
  for (size_t i = 0; i < values.size(); ++i) {
    const char c = values[i];
    if (quote != 0) {
      if (c == quote && values[i - 1] != '\\') quote = 0;
    } else if (at_begin && (c == '"' || c == '\'' || c == '`')) {
      quote = c;
    }
    at_begin = c == ' ' || c == '\t' || c == ',' || c == '[';
  }
  return quote != 0;
}

// Rejects lines that CLI11 would misparse with a misleading error. Lines and lists begin and end
// here where they do for CLI11.
void check_lines(const std::string& text, const std::string& path) {
  std::istringstream lines(text);
  bool in_list = false;
  size_t number = 0;
  for (std::string line; std::getline(lines, line);) {
    ++number;
    const auto refuse = [&](const std::string& what) {
      throw UsageError(path + ", line " + std::to_string(number) + ": " + what);
    };
    CLI::detail::trim(line);
    std::string values = line;
    if (!in_list) {
      if (line.empty() || line.front() == '#' || line.front() == ';') continue;
      if (line.front() == '[') {
        refuse("there are no sections, but " + line + "; options are lines of name = value");
      }
      const size_t equals = line.find('=');
      if (equals == std::string::npos) {
        refuse("there is no = in \"" + line + "\"; options are lines of name = value");
      }
      values = line.substr(equals + 1);
      values = CLI::detail::trim_copy(values.substr(0, values.find('#')));
      in_list = values.size() > 1 && values.front() == '[';
    }
    if (has_open_quote(values)) {
      refuse("a quote is not closed (# begins a comment, within quotes too)");
    }
    if (!values.empty() && values.back() == ']') in_list = false;
  }
}

// `free` are the options that were not set before the file.
void apply(CLI::App& command, const CLI::ConfigItem& item, const std::set<CLI::Option*>& free,
           const std::string& path) {
  CLI::Option* option = command.get_option_no_throw("--" + item.name);
  // A positional is called by its name alone.
  if (option == nullptr) option = command.get_option_no_throw(item.name);
  if (option == nullptr || !item.parents.empty() || !option->get_configurable()) {
    std::vector<std::string> names = long_options(command);
    for (std::string& name : names) name.erase(0, 2);  // as a file has them
    throw UsageError(path + ": there is no option \"" + item.fullname() + "\"; `" +
                     full_name(command) + " --help-all` lists them" +
                     did_you_mean(item.fullname(), names));
  }
  if (item.inputs.empty() || std::ranges::count(item.inputs, "") > 0) {
    throw UsageError(path + ": " + empty_value(item.name));
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
    throw UsageError(path + ": " + wrong_value(*option, error));
  }
}

}  // namespace

void add_config_option(CLI::App& command) {
  const auto path = std::make_shared<std::string>();
  command
      .add_option("--config", *path,
                  "File with any of these options, one a line: name = value, without dashes")
      ->type_name("FILE")
      ->configurable(false);
  // After the command line and the environment have been read.
  command.parse_complete_callback([&command, path] {
    if (path->empty()) return;
    const std::string content = read_text_file(*path, kConfigBytesMax);
    check_lines(content, *path);
    std::istringstream text(content);
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
