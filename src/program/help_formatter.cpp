#include "src/program/help_formatter.h"

#include <algorithm>
#include <array>
#include <cctype>
#include <cstdint>
#include <memory>
#include <regex>
#include <sstream>
#include <string_view>
#include <vector>

namespace blindfuse {
namespace {

constexpr size_t kColumn = 26;  // where descriptions begin
constexpr size_t kDetailIndent = 6;
constexpr std::string_view kNoGroup = "Options";  // the parser's name for it

// Words of `text` in lines of at most HelpFormatter::kWidth, each after `indent` spaces. `begun`:
// what the first line has already.
std::string wrapped(const std::string& text, size_t indent, std::string begun) {
  std::string out;
  std::string line = std::move(begun);
  bool empty = true;
  std::istringstream words(text);
  for (std::string word; words >> word;) {
    if (!empty && line.size() + 1 + word.size() > HelpFormatter::kWidth) {
      out += line + "\n";
      line.assign(indent, ' ');
      empty = true;
    }
    line += (empty ? "" : " ") + word;
    empty = false;
  }
  return out + line + "\n";
}

// A name that starts at the margin of options, and its text in the column of descriptions.
std::string entry(const std::string& name, const std::string& text) {
  std::string begun = "  " + name;
  if (text.empty()) return begun + "\n";
  if (begun.size() + 2 <= kColumn) {
    begun.append(kColumn - begun.size(), ' ');
    return wrapped(text, kColumn, begun);
  }
  return begun + "\n" + wrapped(text, kColumn, std::string(kColumn, ' '));
}

std::string value_of(const CLI::Option& option) {
  if (option.get_items_expected_max() == 0) return "";
  return " " + ValueType(option.get_type_name()).word;
}

std::string name_of(const CLI::Option& option) {
  std::string name;
  for (const std::string& letter : option.get_snames()) name += "-" + letter + ", ";
  for (const std::string& word : option.get_lnames()) name += "--" + word + ", ";
  if (name.ends_with(", ")) name.resize(name.size() - 2);
  return name + value_of(option);
}

std::string argument_name(const CLI::Option& option) {
  std::string name = option.get_name(true);
  std::ranges::transform(name, name.begin(), [](unsigned char c) { return std::toupper(c); });
  if (option.get_items_expected_max() > 1) name += "...";
  return name;
}

bool has_default(const CLI::Option& option) {
  return option.get_items_expected_max() > 0 && !option.get_default_str().empty();
}

// "268435456" as "256MiB", as the option takes it, too.
std::string in_units(const std::string& bytes) {
  constexpr std::array<const char*, 5> kUnits = {"", "KiB", "MiB", "GiB", "TiB"};
  uint64_t number = std::stoull(bytes);
  size_t unit = 0;
  for (; number > 0 && number % 1024 == 0 && unit + 1 < kUnits.size(); ++unit) number /= 1024;
  return std::to_string(number) + kUnits[unit];
}

std::string default_of(const CLI::Option& option) {
  const std::string value = option.get_default_str();
  return ValueType(option.get_type_name()).word == "BYTES" ? in_units(value) : value;
}

// The description, and after it the fact that people need most: whether it may be left out.
std::string description_of(const CLI::Option& option) {
  std::string text = option.get_description();
  if (option.get_required() && !option.get_positional()) return text + " (required)";
  if (has_default(option)) return text + " (default: " + default_of(option) + ")";
  return text;
}

// The details that there are: "[0 to 7; BLINDFUSE_THREADS]".
std::string details_of(const CLI::Option& option) {
  std::string details =
      option.get_items_expected_max() > 0 ? ValueType(option.get_type_name()).range : std::string();
  const std::string variable = option.get_envname();
  if (!variable.empty()) details += (details.empty() ? "" : "; ") + variable;
  return details.empty() ? "" : "[" + details + "]";
}

std::string option_text(const CLI::Option& option, CLI::AppFormatMode mode) {
  if (mode == CLI::AppFormatMode::Normal) return entry(name_of(option), description_of(option));
  const std::string indent(kDetailIndent, ' ');
  std::string text = "  " + name_of(option) + "\n";
  text += wrapped(description_of(option), kDetailIndent, indent);
  const std::string details = details_of(option);
  return details.empty() ? text : text + indent + details + "\n";
}

std::string first_sentence(const std::string& text) {
  return text.substr(0, std::min(text.find(". "), text.find_last_not_of('.') + 1));
}

std::vector<const CLI::App*> commands_of(const CLI::App& app) {
  return app.get_subcommands([](const CLI::App* command) { return !command->get_group().empty(); });
}

std::string usage_of(const CLI::App& app, const std::string& name) {
  std::string usage = name;
  if (!commands_of(app).empty()) return usage + " COMMAND ...";
  for (const CLI::Option* option : app.get_options()) {
    if (option->get_required() && !option->get_positional()) {
      usage += " --" + option->get_lnames().at(0) + value_of(*option);
    }
  }
  usage += " [OPTIONS]";
  for (const CLI::Option* option : app.get_options()) {
    if (!option->get_positional()) continue;
    const std::string argument = argument_name(*option);
    usage += option->get_required() ? " " + argument : " [" + argument + "]";
  }
  return usage;
}

std::string arguments_of(const CLI::App& app) {
  std::string text;
  for (const CLI::Option* option : app.get_options()) {
    if (!option->get_positional()) continue;
    text += entry(argument_name(*option), option->get_description());
  }
  return text.empty() ? "" : "\nArguments:\n" + text;
}

// Every command has these options, which come last.
bool is_common(const CLI::Option& option) {
  return option.check_lname("help") || option.check_lname("help-all") ||
         option.check_lname("version");
}

// The groups in the order in which they were added. Options without a group come last.
std::vector<std::string> groups_of(const CLI::App& app, CLI::AppFormatMode mode) {
  std::vector<std::string> groups = app.get_groups();
  std::erase(groups, "");  // options that are not shown
  if (mode == CLI::AppFormatMode::Normal) {
    std::erase_if(groups, [](const std::string& group) { return group.ends_with(kAdvanced); });
  }
  std::stable_partition(groups.begin(), groups.end(),
                        [](const auto& group) { return group != kNoGroup; });
  return groups;
}

std::string options_of(const CLI::App& app, CLI::AppFormatMode mode) {
  std::string text;
  for (const std::string& group : groups_of(app, mode)) {
    std::vector<const CLI::Option*> options = app.get_options([&](const CLI::Option* option) {
      return option->get_group() == group && option->nonpositional();
    });
    if (options.empty()) continue;
    const bool others = group == kNoGroup && !text.empty();
    text += "\n" + (others ? "Other options" : group) + ":\n";
    std::stable_partition(options.begin(), options.end(),
                          [](const auto* option) { return !is_common(*option); });
    for (const CLI::Option* option : options) text += option_text(*option, mode);
  }
  return text;
}

std::string page_of(const CLI::App& app, const std::string& name, CLI::AppFormatMode mode) {
  std::string text =
      wrapped(app.get_description(), 0, "") + "\nUsage: " + usage_of(app, name) + "\n";
  text += arguments_of(app);
  const std::vector<const CLI::App*> commands = commands_of(app);
  if (!commands.empty()) text += "\nCommands:\n";
  for (const CLI::App* command : commands) {
    text += entry(command->get_name(), first_sentence(command->get_description()));
  }
  text += options_of(app, mode);
  const std::string footer = app.get_footer();
  if (!footer.empty()) text += "\n" + footer + "\n";
  if (mode == CLI::AppFormatMode::Normal) return text;
  for (const CLI::App* command : commands) {
    text += "\n\n" + page_of(*command, full_name(*command), mode);
  }
  return text;
}

}  // namespace

ValueType::ValueType(const std::string& type_name) {
  static const std::regex kRange(R"(in \[(\d+) - (\d+)\])");
  static const std::regex kChoices(R"(\{([^}]*)\})");
  const std::string type = type_name.substr(0, type_name.find(':'));
  word = type == "UINT" || type == "INT" ? "N" : type;
  std::smatch found;
  if (std::regex_search(type_name, found, kRange)) range = found[1].str() + " to " + found[2].str();
  if (!std::regex_search(type_name, found, kChoices)) return;
  word = found[1].str();
  std::istringstream names(word);
  for (std::string name; std::getline(names, name, ',');) choices.push_back(name);
  std::ranges::replace(word, ',', '|');
}

std::string shown_name(const CLI::Option& option, bool with_value) {
  if (option.get_positional()) return argument_name(option);
  return "--" + option.get_lnames().at(0) + (with_value ? value_of(option) : "");
}

std::string full_name(const CLI::App& app) {
  const CLI::App* parent = app.get_parent();
  return parent == nullptr ? app.get_name() : full_name(*parent) + " " + app.get_name();
}

std::string usage_line(const CLI::App& app) { return "usage: " + usage_of(app, full_name(app)); }

std::string HelpFormatter::make_help(const CLI::App* app, std::string name,
                                     CLI::AppFormatMode mode) const {
  // The parser gives the name of the program that was called, with the names of the commands.
  return page_of(*app, name.empty() ? full_name(*app) : name, mode);
}

void format_help(CLI::App& app) {
  app.formatter(std::make_shared<HelpFormatter>());
  app.set_help_flag("-h,--help", "Show this help");
  app.set_help_all_flag("--help-all", "Show all options, ranges and environment variables");
}

}  // namespace blindfuse
