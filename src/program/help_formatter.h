// Formats a program's --help and --help-all.
#pragma once

#include <CLI/CLI.hpp>
#include <string>

namespace blindfuse {

// --help shows choices, description and default of each option. --help-all also shows the range of
// numbers and the environment variable, and, for a program that is made of commands, the page of
// each command. Only a line that is one word may be wider than kWidth, and lines of the footer,
// which is printed as it is.
class HelpFormatter : public CLI::FormatterBase {
 public:
  static constexpr size_t kWidth = 80;

  // name: the beginning of the usage line; if empty, the names of the app and those above it.
  std::string make_help(const CLI::App* app, std::string name,
                        CLI::AppFormatMode mode) const override;
};

// Sets this format for `app` and the commands that are added to it afterwards, and adds --help-all
// to each.
void format_help(CLI::App& app);

}  // namespace blindfuse
