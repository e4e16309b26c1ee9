// The options that `plan` and `build` share: which pairs are read, and everything that shapes a
// layout.
#pragma once

#include <CLI/CLI.hpp>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <type_traits>
#include <vector>

#include "host/publish/database_builder.h"
#include "host/publish/input.h"
#include "src/arithmetic/lwe_params.h"

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

struct LayoutOptions {
  bool index = false;
  std::optional<uint32_t> shard_count;
  std::optional<uint32_t> arity;
  std::optional<uint32_t> digest_bytes;
  std::optional<uint32_t> query_bits;
  std::optional<uint32_t> response_bits;
  std::optional<uint32_t> hint_bits;
  std::string mode_choice = "auto";
  std::string params;
  uint64_t lookups_per_client = 100;
  std::optional<uint32_t> levels;
  bool short_key = false;
  std::optional<uint32_t> keys_per_request;

  void add_to(CLI::App& command);

  // The mode that was asked for, by itself, by its set, by two levels, or by several keys a
  // request. Nothing if it is left open. Throws UsageError if the set is one of the other mode, if
  // two levels or several keys are asked for and the mode has none, if a short key is asked for
  // without two levels, and if several keys are with two levels or numbers as keys.
  std::optional<Mode> mode() const;

  // The set that was asked for, or nullptr.
  const LweParams* lwe() const;

  // The requests that were asked for, with the usual number of buckets. Nothing if they are for
  // one key, or left open.
  std::optional<BatchCode> batch() const;

  // Sets everything that a build needs to know of its layout. Throws the errors of mode().
  void apply_to(BuildOptions& options) const;

 private:
  void add_advanced_to(CLI::App& command);
  void check_keys_per_request() const;
};

}  // namespace blindfuse
