// Formats a program's --help and --help-all.
#pragma once

#include <CLI/CLI.hpp>
#include <string>
#include <string_view>
#include <vector>

namespace blindfuse {

// The end of the name of a group of options that few people need.
inline constexpr std::string_view kAdvanced = " (advanced)";

// --help shows choices, description and default of each option outside of the groups that end with
// kAdvanced. --help-all shows all options, with the range of numbers and the environment variable,
// and, for a program that is made of commands, the page of each command. Only a line that is one
// word may be wider than kWidth, and lines of the footer, which is printed as it is.
class HelpFormatter : public CLI::FormatterBase {
 public:
  static constexpr size_t kWidth = 80;

  // name: the beginning of the usage line; if empty, the names of the app and those above it.
  std::string make_help(const CLI::App* app, std::string name,
                        CLI::AppFormatMode mode) const override;
};

// The parser's description of an option's value, taken apart: "UINT:UINT in [0 - 7]", "TEXT:{a,b}",
// "FILE".
struct ValueType {
  explicit ValueType(const std::string& type_name);

  std::string word;                  // what stands for the value: "N", "a|b", "FILE"
  std::string range;                 // of a number: "0 to 7"; empty if it has none
  std::vector<std::string> choices;  // empty if any value of the type is possible
};

// "--threads N" and "INPUT..."; "--threads" without the value.
std::string shown_name(const CLI::Option& option, bool with_value = true);

// "blindfuse serve"
std::string full_name(const CLI::App& app);

// "usage: blindfuse serve [OPTIONS] [DIRECTORY]"
std::string usage_line(const CLI::App& app);

// Sets this format for `app` and the commands that are added to it afterwards, and adds --help-all
// to each.
void format_help(CLI::App& app);

}  // namespace blindfuse
