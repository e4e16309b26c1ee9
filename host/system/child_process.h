// A child process that runs this program, for work that may crash or hang. Its output is read line
// by line, and every wait for it has a limit.
#pragma once

#include <sys/types.h>

#include <chrono>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "src/system/file.h"

namespace blindfuse {

// The path of the running program, so that a child can run the same one.
std::filesystem::path own_program();

class ChildProcess {
 public:
  // Runs the program with these arguments, as a shell would start it: no signal is blocked or
  // ignored. It reads nothing. Its standard error is that of this process. Throws ResourceError,
  // which says why, if it cannot be started.
  ChildProcess(const std::filesystem::path& program, const std::vector<std::string>& arguments);
  // Kills it.
  ~ChildProcess();
  ChildProcess(const ChildProcess&) = delete;
  ChildProcess& operator=(const ChildProcess&) = delete;

  enum class Said {
    kLine,
    kNothing,  // in that time
    kEnd,      // it has closed its output, or has written more than a line may have
  };
  struct Line {
    Said said = Said::kEnd;
    std::string text;  // without the newline
  };
  // The next line of its standard output, which has up to 4,096 bytes.
  Line read_line(std::chrono::milliseconds patience);

  // Kills it if it has not ended in that time. Returns how it ended, for people: "exit status 3",
  // "signal 11 (Segmentation fault)", "" for exit status 0. A child that is stuck in the kernel,
  // and cannot be killed, is left running: "it cannot be killed".
  std::string end(std::chrono::milliseconds patience);

 private:
  // Returns the child's status, as of waitpid(), after it has ended.
  std::optional<int> wait(std::chrono::milliseconds patience);

  pid_t pid_ = -1;  // -1: it has ended, or was left behind
  FileDescriptor output_;
  std::string pending_;
};

}  // namespace blindfuse
