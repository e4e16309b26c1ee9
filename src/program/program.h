// The code that both programs share: version, logging, environment variables, exit statuses.
#pragma once

#include <string>
#include <string_view>

namespace CLI {
class App;
}

namespace blindfuse {

inline constexpr int kExitFailed =
    1;  // InputError, ResourceError, or anything else that went wrong
inline constexpr int kExitUsageError = 2;  // the command line itself
inline constexpr int kExitNotThere = 3;    // blindfuse-client: a key is not in the database
inline constexpr int kExitNotAsked = 4;    // blindfuse-client: a key was not asked for

// Thrown by a command to end with a status of its own, without a message.
struct ExitStatus {
  int status;
};

std::string program_version();

// Writes to standard output, which keeps some of it. Throws ResourceError if that fails.
void print(std::string_view text);
// Writes what standard output has kept. Throws ResourceError if that fails, or failed before.
void flush_output();

// The commit that a program was built of, with "-dirty" if files were changed after it, or
// "unknown". The two programs define it (cmake/commit.cmake), and other executables do not.
extern const char* const kSourceCommit;

// Parses the command line (src/program/command_line.h), runs the chosen command's callback, and
// returns the exit status: 1 if standard output could not be written, whatever the command ended
// with. Every exception becomes one line on standard error. Adds --version, which also prints the
// lines of `details`. Logs go to standard error.
int run_program(CLI::App& app, int argc, char** argv, std::string (*details)() = nullptr);

// Runs a program with commands, all of which `add_commands` adds.
int run_commands(const std::string& name, const std::string& description,
                 void (*add_commands)(CLI::App& program), std::string (*details)(), int argc,
                 char** argv);

}  // namespace blindfuse
