#include "src/program/command_line.h"

#include <unistd.h>

#include <algorithm>
#include <cctype>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <map>
#include <memory>
#include <numeric>
#include <set>
#include <sstream>
#include <string>
#include <utility>

#include "src/base/errors.h"
#include "src/program/help_formatter.h"
#include "src/program/log.h"
#include "src/system/file.h"

namespace blindfuse {
namespace {

std::string joined(const std::vector<std::string>& words, const std::string& last = ", ") {
  std::string text;
  for (size_t i = 0; i < words.size(); ++i) {
    text += (i == 0 ? "" : i + 1 == words.size() ? last : ", ") + words[i];
  }
  return text;
}

// The Levenshtein distance.
size_t edit_distance(std::string_view a, std::string_view b) {
  std::vector<size_t> row(b.size() + 1);
  std::iota(row.begin(), row.end(), size_t{0});
  for (size_t i = 0; i < a.size(); ++i) {
    size_t diagonal = std::exchange(row[0], i + 1);
    for (size_t j = 0; j < b.size(); ++j) {
      const size_t changed = diagonal + (a[i] == b[j] ? 0 : 1);
      diagonal = row[j + 1];
      row[j + 1] = std::min({changed, diagonal + 1, row[j] + 1});
    }
  }
  return row.back();
}

std::vector<std::string> command_names(const CLI::App& app) {
  std::vector<std::string> names;
  for (const CLI::App* command : app.get_subcommands([](const CLI::App*) { return true; })) {
    names.push_back(command->get_name());
  }
  return names;
}

bool has_commands(const CLI::App& app) { return app.get_require_subcommand_min() > 0; }

// "help" is "--help", and "help COMMAND" is "COMMAND --help", unless there is such a command.
std::vector<std::string> arguments_of(const CLI::App& app, int argc, char** argv) {
  std::vector<std::string> arguments(argv + std::min(argc, 1), argv + argc);
  if (!has_commands(app) || arguments.empty() || arguments[0] != "help") return arguments;
  if (std::ranges::count(command_names(app), "help") > 0) return arguments;
  arguments.erase(arguments.begin());
  arguments.push_back("--help");
  return arguments;
}

std::string list_of_commands(const CLI::App& app) { return joined(command_names(app), " and "); }

// The command that the arguments name; the program where it has no commands, or none is named. The
// parser itself would only say that a command is missing, or show help and call that success.
CLI::App& chosen_command(CLI::App& app, const std::vector<std::string>& arguments) {
  // The program's own options take no values.
  const auto name = std::ranges::find_if(
      arguments, [](const std::string& argument) { return !argument.starts_with('-'); });
  if (!has_commands(app) || name == arguments.end()) return app;
  const auto named =
      app.get_subcommands([&](const CLI::App* command) { return command->get_name() == *name; });
  if (!named.empty()) return *named.front();
  throw UsageError("there is no command \"" + *name + "\"; there are " + list_of_commands(app) +
                   did_you_mean(*name, command_names(app)));
}

bool replaces_command(const CLI::Option& option) {
  return option.check_lname("help") || option.check_lname("help-all") ||
         option.check_lname("version");
}

std::string long_name(const CLI::Option& option) { return "--" + option.get_lnames().at(0); }

// These checks come before all others of the option.
void add_rules(CLI::App& command, CLI::Option& option) {
  const bool is_file = ValueType(option.get_type_name()).word == "FILE";
  option.transform(CLI::Validator(
      [&command, name = long_name(option), is_file](std::string& value) -> std::string {
        if (value.empty()) throw UsageError(empty_value(name));
        if (value.starts_with("--") && command.get_option_no_throw(value) != nullptr) {
          throw UsageError(name + " has no value: " + value + " follows");
        }
        if (is_file && access(value.c_str(), R_OK) != 0) {
          throw InputError(name + ": cannot open " + value + ": " + std::strerror(errno));
        }
        return {};
      },
      ""));
}

void prepare(CLI::App& command) {
  for (CLI::Option* option : command.get_options()) {
    // A variable that happens to be set must not replace the command.
    if (option->get_lnames().empty() || replaces_command(*option)) continue;
    std::string name = "BLINDFUSE_" + option->get_lnames()[0];
    for (char& c : name) c = c == '-' ? '_' : static_cast<char>(std::toupper(c));
    option->envname(name);
    if (option->get_items_expected_max() > 0) add_rules(command, *option);
  }
}

// Refuses empty values that the parser passes over: it ignores an empty variable, and after
// "--name=" it takes the next argument.
void refuse_empty(const CLI::App& command, const std::vector<std::string>& arguments) {
  for (const CLI::Option* option : command.get_options()) {
    if (option->get_lnames().empty() || replaces_command(*option)) continue;
    const std::string name = long_name(*option);
    if (std::ranges::count(arguments, name + "=") > 0) throw UsageError(empty_value(name));
    const std::string variable = option->get_envname();
    const char* value = std::getenv(variable.c_str());
    const bool is_given = std::ranges::any_of(arguments, [&](const std::string& argument) {
      return argument == name || argument.starts_with(name + "=");
    });
    if (value != nullptr && *value == 0 && !is_given) {
      throw UsageError("the variable " + variable + " is empty: give it a value, or unset it");
    }
  }
}

std::string help_of(const CLI::App& command) {
  return "`" + full_name(command) + " --help-all` lists the options";
}

std::string unexpected(const CLI::App& command, const std::string& argument) {
  if (!argument.starts_with('-') || argument.size() < 2) {
    return "one argument too many: " + argument + "; " + usage_line(command);
  }
  const std::string name = argument.substr(0, argument.find('='));
  return "there is no option " + name + "; " + help_of(command) +
         did_you_mean(name, long_options(command));
}

std::string missing(const CLI::App& command) {
  std::vector<std::string> names;
  for (const CLI::Option* option : command.get_options()) {
    if (option->get_required() && option->count() == 0) names.push_back(shown_name(*option));
  }
  if (!names.empty()) return "missing " + joined(names, " and ") + "; " + usage_line(command);
  return "missing COMMAND; there are " + list_of_commands(command) + ", and `" +
         full_name(command) + " --help` says what each does";
}

// The option that the parser's message begins with, or names as one that it could not convert.
const CLI::Option* option_in(const CLI::App& command, const std::string& message) {
  for (const CLI::Option* option : command.get_options()) {
    const std::string name = option->get_name();
    if (message.starts_with(name + ":") || message.starts_with(name + " ") ||
        message.starts_with("Could not convert: " + name + " =")) {
      return option;
    }
  }
  return nullptr;
}

std::string explain(const CLI::App& app, const CLI::ParseError& error) {
  const auto parsed = app.get_subcommands();
  const CLI::App& command = parsed.empty() ? app : *parsed.front();
  const std::string message = error.what();
  // A name that does not exist explains best why another one is missing.
  std::vector<std::string> rest = app.remaining(true);
  std::erase(rest, "--");
  if (!rest.empty()) return unexpected(command, rest.front());
  if (dynamic_cast<const CLI::RequiredError*>(&error) != nullptr) return missing(command);
  const std::string_view excludes = " excludes ";
  if (const size_t at = message.find(excludes); at != std::string::npos) {
    return message.substr(0, at) + " and " + message.substr(at + excludes.size()) +
           " contradict each other; leave one of them out";
  }
  const CLI::Option* option = option_in(command, message);
  return option == nullptr ? message + "; " + help_of(command) : wrong_value(*option, error);
}

// The words for a value of this type in a sentence; empty for a text of any kind.
std::string wanted(const ValueType& type) {
  const std::string range = type.range.empty() ? "" : " from " + type.range;
  if (!type.choices.empty()) return joined(type.choices, " or ");
  if (type.word == "N") return "a whole number" + range;
  if (type.word == "COUNT") return "a whole number" + range + ", such as 250000, 250k or 1M";
  if (type.word == "BYTES") {
    return "a number of bytes" + range +
           ", such as 64000000, 64M (powers of 1000) or 64MiB (powers of 1024)";
  }
  return "";
}

// AsNumberWithUnit takes the unit off a value that it then refuses.
CLI::Validator with_units(const CLI::AsNumberWithUnit& units) {
  return CLI::Validator(
      [units](std::string& value) {
        std::string number = value;
        const std::string fault = units(number);
        if (fault.empty()) value = number;
        return fault;
      },
      "");
}

constexpr uint64_t kConfigBytesMax = 1 << 20;

// True if a value of the line begins with a quote that does not come again.
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

std::string did_you_mean(std::string_view given, const std::vector<std::string>& names) {
  const auto distance = [&](const std::string& name) { return edit_distance(given, name); };
  const auto nearest = std::ranges::min_element(names, {}, distance);
  // Two letters that were swapped are two changes.
  const auto letters =
      std::ranges::count_if(given, [](unsigned char c) { return std::isalpha(c) != 0; });
  const auto most = static_cast<size_t>(std::min<std::ptrdiff_t>(letters / 2, 3));
  if (nearest == names.end() || distance(*nearest) > most) return "";
  return "; did you mean " + *nearest + "?";
}

std::vector<std::string> long_options(const CLI::App& command) {
  std::vector<std::string> names;
  for (const CLI::Option* option : command.get_options()) {
    if (!option->get_lnames().empty() && !option->get_group().empty()) {
      names.push_back(long_name(*option));
    }
  }
  return names;
}

void add_former_name(CLI::App& command, const std::string& former, const std::string& name) {
  CLI::Option* option = command.get_option(name);
  const auto give = [option, former, name](const std::vector<std::string>& values) {
    if (option->count() > 0) {
      throw UsageError(former + " is the former name of " + name + "; give the latter alone");
    }
    log_warning("{} is now {}; the next release removes the former name", former, name);
    for (const std::string& value : values) option->add_result(value);
    option->run_callback();
    return true;
  };
  command.add_option(former, give)->group("");
}

void add_removed_option(CLI::App& command, const std::string& name, const std::string& cure) {
  const auto refuse = [name, cure](const std::vector<std::string>&) -> bool {
    throw UsageError("there is no option " + name + " any more; " + cure);
  };
  command.add_option(name, refuse)->expected(0, 1)->group("");
}

std::string empty_value(const std::string& name) {
  return name + " is empty: give it a value, or leave it out";
}

std::string wrong_value(const CLI::Option& option, const CLI::ParseError& error) {
  const std::vector<std::string>& values = option.results();
  const ValueType type(option.get_type_name());
  const char* variable = std::getenv(option.get_envname().c_str());
  const bool is_of_variable = variable != nullptr && values == std::vector<std::string>{variable};
  const std::string name =
      is_of_variable ? option.get_envname() : shown_name(option, /*with_value=*/false);
  const std::string right = wanted(type);
  if (dynamic_cast<const CLI::ArgumentMismatch*>(&error) != nullptr && values.size() < 2) {
    return name + " has no value: give " + (right.empty() ? type.word : right);
  }
  const std::string given = name + " " + joined(values) + ": ";
  if (dynamic_cast<const CLI::ArgumentMismatch*>(&error) != nullptr) {
    return given + "give one value; one with spaces needs quotes";
  }
  if (option.get_items_expected_max() == 0) return given + "give true or false";
  if (right.empty()) {
    const std::string why = error.what();
    const std::string prefix = option.get_name() + ": ";
    return given + (why.starts_with(prefix) ? why.substr(prefix.size()) : why);
  }
  const bool is_choice = !type.choices.empty() && !values.empty();
  return given + "give " + right + (is_choice ? did_you_mean(values.front(), type.choices) : "");
}

CLI::Validator byte_units() { return with_units(CLI::AsSizeValue(/*kb_is_1000=*/true)); }

CLI::Validator count_units() {
  return with_units(CLI::AsNumberWithUnit(
      std::map<std::string, uint64_t>{{"k", 1'000}, {"M", 1'000'000}, {"G", 1'000'000'000}},
      CLI::AsNumberWithUnit::CASE_SENSITIVE));
}

void parse_command_line(CLI::App& app, int argc, char** argv) {
  std::vector<std::string> arguments = arguments_of(app, argc, argv);
  const auto is_given = [&](const char* flag) { return std::ranges::count(arguments, flag) > 0; };
  const bool asks_for_all = is_given("--help-all");
  const bool asks_for_help = asks_for_all || is_given("--help") || is_given("-h");
  CLI::App& command = chosen_command(app, arguments);
  prepare(command);
  // The variables of other commands do not count; --help-all shows them.
  if (&command == &app && asks_for_all) {
    for (CLI::App* each : app.get_subcommands({})) prepare(*each);
  }
  if (!asks_for_help) refuse_empty(command, arguments);
  // Help is shown in spite of any other error.
  const auto show_help = [&] {
    if (asks_for_all) throw CLI::CallForAllHelp();
    if (asks_for_help) throw CLI::CallForHelp();
  };
  std::ranges::reverse(arguments);  // as parse() takes them
  try {
    app.parse(std::move(arguments));
  } catch (const CLI::Success&) {
    throw;
  } catch (const CLI::ParseError& error) {
    show_help();
    throw UsageError(explain(app, error));
  } catch (const InputError&) {
    show_help();
    throw;
  }
}

void add_config_option(CLI::App& command) {
  const auto path = std::make_shared<std::string>();
  command
      .add_option("--config", *path,
                  "File with any of these options, one a line: name = value, without dashes")
      ->type_name("FILE")
      ->configurable(false);
  // The file is read after the command line and the environment.
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
