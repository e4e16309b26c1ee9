// The command line of a program: CLI11 parses it, and this adds what CLI11 lacks.
//
// - Every option has an environment variable ("--query-bits" is BLINDFUSE_QUERY_BITS).
// - No option has an empty value, on the command line, in a variable or in a configuration file: a
//   script whose variable is not set must not switch a protection off.
// - A FILE is a file that can be read.
// - An error names what is wrong and the cure.
#pragma once

#include <CLI/CLI.hpp>
#include <string>
#include <string_view>
#include <vector>

namespace blindfuse {

// Runs the callback of the chosen command. Throws UsageError for a wrong command line or variable,
// InputError for a FILE that cannot be read, and CLI::Success for --help and --version.
void parse_command_line(CLI::App& app, int argc, char** argv);

// Names the fault of the values that an option was given, and the cure: "--threads 0: give a number
// from 1 to 64". `error`: the parser's.
std::string wrong_value(const CLI::Option& option, const CLI::ParseError& error);
std::string empty_value(const std::string& name);

// "; did you mean NAME?", or nothing if no name is similar.
std::string did_you_mean(std::string_view given, const std::vector<std::string>& names);

// "--help --verbose", the long options of a command, without those that are hidden.
std::vector<std::string> long_options(const CLI::App& command);

// Lets an option of the command, which is there already, have its former name for one more release.
// It is in no help, and a warning names the present one.
void add_former_name(CLI::App& command, const std::string& former, const std::string& name);

// Adds an option that has been removed: using it is an error that names the cure. It is in no help.
void add_removed_option(CLI::App& command, const std::string& name, const std::string& cure);

// Units of a number, for Option::transform: "64M" is 64'000'000, and "64MiB" is 67'108'864. The
// type of such an option is BYTES.
CLI::Validator byte_units();
// Takes k, M and G, of a number whose type is COUNT.
CLI::Validator count_units();

// Adds --config to this command: a file of options, one `name = value` a line, as on the command
// line but without the dashes. CLI11 parses it. The options are applied here, because CLI11 2.1
// does so for the top command alone, and lets the file override the environment.
//
// The command line and the environment override the file. An option of the file that the command
// does not have, or a wrong value, is refused in the same way as on the command line, and so are
// sections and open quotes. A file that cannot be read is an InputError. Required options have to
// be checked after that: CLI11 would do it before.
void add_config_option(CLI::App& command);

}  // namespace blindfuse
