#include "src/program/program.h"

#include <fcntl.h>
#include <spdlog/sinks/stdout_color_sinks.h>
#include <spdlog/spdlog.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cctype>
#include <cerrno>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <exception>
#include <new>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "src/base/errors.h"
#include "src/program/help_formatter.h"
#include "src/program/printable.h"
#include "src/program/version.h"

namespace blindfuse {
namespace {

void name_environment_variables(CLI::App& app) {
  for (CLI::Option* option : app.get_options()) {
    if (option->get_lnames().empty()) continue;
    // These replace the command, which a variable that happens to be set must not do.
    const std::string& word = option->get_lnames()[0];
    if (word == "help" || word == "help-all" || word == "version") continue;
    std::string name = "BLINDFUSE_" + word;
    for (char& c : name) c = c == '-' ? '_' : static_cast<char>(std::toupper(c));
    option->envname(name);
  }
  for (CLI::App* command : app.get_subcommands({})) name_environment_variables(*command);
}

int fail(const CLI::App& app, std::string_view what, int status = kExitFailed) {
  // It may quote a name that somebody else chose, to drive the operator's terminal.
  const std::string line = printable(what, std::string_view::npos);
  std::fprintf(stderr, "%s: %s\n", app.get_name().c_str(), line.c_str());
  return status;
}

// Otherwise the next file that is opened gets the number of the closed stream, and what is meant
// for that is written into the file. The wrong direction lets each use of the stream fail as
// before.
void fill_closed_streams() {
  for (const int stream : {STDIN_FILENO, STDOUT_FILENO, STDERR_FILENO}) {
    if (fcntl(stream, F_GETFD) >= 0 || errno != EBADF) continue;
    // The lowest number that is free: the streams below are open.
    if (open("/dev/null", stream == STDIN_FILENO ? O_WRONLY : O_RDONLY) != stream) {
      throw ResourceError(std::string("cannot open /dev/null: ") + std::strerror(errno));
    }
  }
}

// The parser itself would only say that a command is missing, or show help and call that success.
void refuse_unknown_command(const CLI::App& app, const std::vector<std::string>& arguments) {
  if (arguments.size() < 2 || arguments[1].starts_with('-') ||
      app.get_require_subcommand_min() == 0) {
    return;
  }
  std::string known;
  for (const CLI::App* command : app.get_subcommands([](const CLI::App*) { return true; })) {
    if (command->get_name() == arguments[1]) return;
    known += (known.empty() ? "" : ", ") + command->get_name();
  }
  throw UsageError("there is no command \"" + arguments[1] + "\"; there are " + known);
}

// "help" is "--help", and "help COMMAND" is "COMMAND --help", unless there is such a command.
std::vector<std::string> arguments_of(const CLI::App& app, int argc, char** argv) {
  std::vector<std::string> arguments(argv, argv + argc);
  if (app.get_require_subcommand_min() == 0 || argc < 2 || arguments[1] != "help") return arguments;
  const auto commands = app.get_subcommands([](const CLI::App*) { return true; });
  const auto is_help = [](const CLI::App* command) { return command->get_name() == "help"; };
  if (std::ranges::any_of(commands, is_help)) return arguments;
  arguments.erase(arguments.begin() + 1);
  arguments.push_back("--help");
  return arguments;
}

}  // namespace

std::string program_version() { return BLINDFUSE_VERSION; }

int run_program(CLI::App& app, int argc, char** argv) {
  // https://no-color.org
  const char* no_color = std::getenv("NO_COLOR");
  const bool is_plain = no_color != nullptr && *no_color != '\0';
  spdlog::set_default_logger(spdlog::stderr_color_mt(
      "blindfuse", is_plain ? spdlog::color_mode::never : spdlog::color_mode::automatic));
  spdlog::set_pattern("%Y-%m-%dT%H:%M:%S.%e%z %^%l%$ %v");
  // A reader that goes away is an error to report, not a reason to die without a word.
  std::signal(SIGPIPE, SIG_IGN);
  std::signal(SIGXFSZ, SIG_IGN);  // nor is a limit on the size of files
  app.set_version_flag("--version", app.get_name() + " " + program_version(), "Show the version");
  name_environment_variables(app);
  try {
    fill_closed_streams();
    std::vector<std::string> arguments = arguments_of(app, argc, argv);
    refuse_unknown_command(app, arguments);
    if (!arguments.empty()) arguments.erase(arguments.begin());  // the program's name
    std::ranges::reverse(arguments);                             // as parse() takes them
    app.parse(std::move(arguments));
    std::fflush(stdout);
    if (std::ferror(stdout)) return fail(app, "cannot write to standard output");
    return 0;
  } catch (const CLI::Success& asked) {  // --help and --version
    return app.exit(asked);
  } catch (const CLI::ParseError& error) {
    app.exit(error);
    return kExitUsageError;
  } catch (const ExitStatus& exit) {
    return exit.status;
  } catch (const UsageError& error) {
    return fail(app, error.what(), kExitUsageError);
  } catch (const DeviceLostError& error) {
    const int status = fail(app, error.what());
    // What destructors of static objects would call, the driver, may not return any more.
    std::fflush(nullptr);
    _exit(status);
  } catch (const std::bad_alloc&) {
    return fail(app, "out of memory");
  } catch (const std::exception& error) {
    return fail(app, error.what());
  }
}

int run_commands(const std::string& name, const std::string& description,
                 void (*add_commands)(CLI::App& program), int argc, char** argv) {
  CLI::App program(description, name);
  program.require_subcommand(1);
  program.footer("\"" + name + " COMMAND --help\" shows the options of a command.");
  format_help(program);
  add_commands(program);
  return run_program(program, argc, argv);
}

}  // namespace blindfuse
