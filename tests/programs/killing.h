// Programs that are killed at a call of the test's choice (kill_at_call.cpp), not after some time.
#pragma once

#include <cstdlib>
#include <string>
#include <vector>

#include "tests/programs/program_testing.h"

namespace blindfuse::program_testing {

inline std::vector<std::string> with_counted_calls(const std::vector<std::string>& command,
                                                   const std::string& variable) {
  const char* sanitizer = std::getenv("ASAN_OPTIONS");
  std::vector<std::string> all = {
      "env",
      "LD_PRELOAD=" + paths::program_folder() + "/../tests/blindfuse-kill-at-call.so",
      // What is loaded here comes before the sanitizer.
      "ASAN_OPTIONS=" + (sanitizer != nullptr ? std::string(sanitizer) + ":" : std::string()) +
          "verify_asan_link_order=0",
      variable,
  };
  all.insert(all.end(), command.begin(), command.end());
  return all;
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
