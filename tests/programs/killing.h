// Programs that are killed at a call of the test's choice (kill_at_call.cpp), not after some time.
#pragma once

#include <cstdlib>
#include <string>
#include <vector>

#include "tests/programs/program_testing.h"

namespace blindfuse::program_testing {

inline std::vector<std::string> with_counted_calls(const std::vector<std::string>& command,
                                                   const std::string& variable) {
  return with_module(command, "blindfuse-kill-at-call", {variable});
}

// Before its call of this number that changes files, from 1, or in the middle of that call.
inline std::vector<std::string> killed_at_call(const std::vector<std::string>& command,
                                               long number) {
  return with_counted_calls(command, "BLINDFUSE_KILL_AT_CALL=" + std::to_string(number));
}

// How many such calls a program makes until it ends, which must be well.
inline long count_calls(const TemporaryFolder& folder, const std::vector<std::string>& command) {
  const std::string path = folder / "calls";
  const ProgramResult result =
      run(folder, with_counted_calls(command, "BLINDFUSE_CALLS_TO=" + path));
  if (result.status != 0) return 0;
  return std::strtol(read_whole(path).c_str(), nullptr, 10);
}

}  // namespace blindfuse::program_testing
