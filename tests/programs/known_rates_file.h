// A file of rates for `plan`, so that a test measures nothing and leaves the user's cache alone.
#pragma once

#include <string>

#include "host/publish/rates.h"
#include "tests/programs/program_testing.h"
#include "tests/publish/known_rates.h"

namespace blindfuse::program_testing {

inline std::string known_rates_file(const TemporaryFolder& folder) {
  const Rates rates{{"A 9000", "1.2.3", "scan portable, packing portable"}, support::known_rates()};
  return write_file(folder / "known-rates.json", serialize_rates(rates));
}

// `blindfuse plan` with these rates, and what follows.
inline std::vector<std::string> plan_command(const TemporaryFolder& folder,
                                             const std::vector<std::string>& more) {
  std::vector<std::string> command = {kBlindfuse, "plan", "--rates", known_rates_file(folder)};
  command.insert(command.end(), more.begin(), more.end());
  return command;
}

}  // namespace blindfuse::program_testing
