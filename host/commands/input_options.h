// The options that `plan` and `build` share: which pairs are read, and how.
#pragma once

#include <CLI/CLI.hpp>
#include <map>
#include <memory>
#include <string>
#include <type_traits>
#include <vector>

#include "host/publish/input.h"

namespace blindfuse {

// A choice between words, each of which stands for a value.
template <typename Choice>
void add_choice(CLI::App& command, const char* name, Choice& target,
                const std::map<std::string, std::type_identity_t<Choice>>& choices,
                const std::string& help) {
  std::vector<std::string> names;
  for (const auto& choice : choices) names.push_back(choice.first);
  command
      .add_option_function<std::string>(
          name, [&target, choices](const std::string& chosen) { target = choices.at(chosen); },
          help)
      ->check(CLI::IsMember(names));
}

struct InputChoices {
  std::vector<std::string> files;
  SourceOptions source;
  InputOptions input;

  // Adds the files themselves, which come without a name of an option.
  CLI::Option* add_files_to(CLI::App& command);
  void add_to(CLI::App& command);

  // The options for this kind of database.
  InputOptions options(bool is_index) const;
  std::vector<std::unique_ptr<KeyValueSource>> open(bool is_index) const;
};

}  // namespace blindfuse
