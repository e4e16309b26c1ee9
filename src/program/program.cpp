#include "src/program/program.h"

#include <fcntl.h>
#include <spdlog/sinks/stdout_color_sinks.h>
#include <spdlog/spdlog.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <cerrno>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <exception>
#include <new>
#include <string>
#include <string_view>

#include "src/base/errors.h"
#include "src/program/command_line.h"
#include "src/program/help_formatter.h"
#include "src/program/printable.h"
#include "src/program/version.h"

namespace blindfuse {
namespace {

int fail(const CLI::App& app, std::string_view what, int status = kExitFailed) {
  // The text may quote a name that somebody else chose, to drive the operator's terminal.
  const std::string line = printable(what, std::string_view::npos);
  std::fprintf(stderr, "%s: %s\n", app.get_name().c_str(), line.c_str());
  return status;
}

// The next file that is opened would otherwise get the number of the closed stream, and what is
// meant for that would be written into the file. The wrong direction lets each use of the stream
// fail as before.
void fill_closed_streams() {
  for (const int stream : {STDIN_FILENO, STDOUT_FILENO, STDERR_FILENO}) {
    if (fcntl(stream, F_GETFD) >= 0 || errno != EBADF) continue;
    // The lowest number that is free: the streams below are open.
    if (open("/dev/null", stream == STDIN_FILENO ? O_WRONLY : O_RDONLY) != stream) {
      throw ResourceError(std::string("cannot open /dev/null: ") + std::strerror(errno));
    }
  }
}

// The exit status of the command.
int run_command(CLI::App& app, int argc, char** argv) {
  try {
    parse_command_line(app, argc, argv);
    return 0;
  } catch (const CLI::Success& asked) {  // --help and --version
    return app.exit(asked);
  } catch (const ExitStatus& exit) {
    return exit.status;
  }
}

// errno: why the call failed; 0: it only found that an earlier one had failed.
[[noreturn]] void fail_to_write() {
  const std::string why = errno != 0 ? std::string(": ") + std::strerror(errno) : "";
  throw ResourceError("cannot write to standard output" + why);
}

}  // namespace

std::string program_version() { return BLINDFUSE_VERSION; }

void print(std::string_view text) {
  errno = 0;
  if (std::fwrite(text.data(), 1, text.size(), stdout) != text.size()) fail_to_write();
}

void flush_output() {
  errno = 0;
  if (std::fflush(stdout) != 0 || std::ferror(stdout) != 0) fail_to_write();
}

int run_program(CLI::App& app, int argc, char** argv, std::string (*details)()) {
  // https://no-color.org
  const char* no_color = std::getenv("NO_COLOR");
  const bool is_plain = no_color != nullptr && *no_color != '\0';
  spdlog::set_default_logger(spdlog::stderr_color_mt(
      "blindfuse", is_plain ? spdlog::color_mode::never : spdlog::color_mode::automatic));
  spdlog::set_pattern("%Y-%m-%dT%H:%M:%S.%e%z %^%l%$ %v");
  // A write to a reader that has gone must be an error and not end the process.
  std::signal(SIGPIPE, SIG_IGN);
  std::signal(SIGXFSZ, SIG_IGN);  // nor is a limit on the size of files
  const auto version = [&] {
    const std::string first = app.get_name() + " " + program_version();
    return details == nullptr ? first : first + "\n" + details();
  };
  app.set_version_flag("--version", version, "Show the version, and what is built in");
  try {
    fill_closed_streams();
    const int status = run_command(app, argc, argv);
    flush_output();
    return status;
  } catch (const UsageError& error) {
    return fail(app, error.what(), kExitUsageError);
  } catch (const std::bad_alloc&) {
    return fail(app, "out of memory");
  } catch (const std::exception& error) {
    return fail(app, error.what());
  }
}

int run_commands(const std::string& name, const std::string& description,
                 void (*add_commands)(CLI::App& program), std::string (*details)(), int argc,
                 char** argv) {
  CLI::App program(description, name);
  program.require_subcommand(1);
  program.footer("\"" + name + " COMMAND --help\" shows the options of a command.");
  format_help(program);
  add_commands(program);
  return run_program(program, argc, argv, details);
}

}  // namespace blindfuse
