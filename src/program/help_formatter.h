// How a program's --help and --help-all look.
#pragma once

#include <CLI/CLI.hpp>
#include <string>

namespace blindfuse {

// --help has of each option its choices, its description and its default; --help-all also has the
// range of its numbers and its environment variable, and, of a program that is made of commands,
// the page of each. No line is wider than kWidth, except for one word that is.
//
// A command's footer is printed as it is, and begins with an example.
class HelpFormatter : public CLI::FormatterBase {
 public:
  static constexpr size_t kWidth = 80;

  // name: what the usage line begins with; when empty, the names of the app and those above it.
  std::string make_help(const CLI::App* app, std::string name,
                        CLI::AppFormatMode mode) const override;
};

// Makes `app`, and the commands that are added to it later, print their help so. --help-all is
// another option of each.
void format_help(CLI::App& app);

}  // namespace blindfuse
