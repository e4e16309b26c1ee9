#include "host/commands/layout_options.h"

#include <array>
#include <vector>

#include "src/arithmetic/layout.h"
#include "src/base/errors.h"

namespace blindfuse {
namespace {

constexpr std::array kModes = {Mode::kHint, Mode::kPacked};

std::string sets_for(Mode mode) {
  std::string names;
  for (const LweParams& set : lwe_params()) {
    if (set.mode == mode) names += (names.empty() ? "" : ", ") + std::string(set.name);
  }
  return names;
}

// "lwe-1774 for hint, ring-2048 for packed"
std::string defaults() {
  std::string text;
  for (const Mode mode : kModes) {
    text += (text.empty() ? "" : ", ") + std::string(default_lwe_params(mode).name) + " for " +
            std::string(mode_name(mode));
  }
  return text;
}

}  // namespace

void LayoutOptions::add_to(CLI::App& command) {
  std::vector<std::string> names;
  for (const LweParams& set : lwe_params()) names.emplace_back(set.name);
  command.add_flag("--index", index,
                   "A database addressed by number: the position in the input, from 0");
  command
      .add_option("--lookups-per-client", lookups_per_client,
                  "Look-ups that a client makes in one epoch: many favour small queries, few a "
                  "small hint")
      ->check(CLI::Range(uint64_t{1}, uint64_t{1'000'000'000}))
      ->capture_default_str();
  command.add_option("--shards", shard_count, "Number of shards instead of the planner's choice")
      ->check(CLI::Range(1u, kShardCountMax));
  command
      .add_option("--arity", arity,
                  "Rows a key: 3 (default), or 4 for a smaller matrix that takes longer to fill")
      ->check(CLI::IsMember({3u, 4u}));
  command
      .add_option(
          "--mode", mode_choice,
          "hint: clients download a hint once an epoch, and their look-ups are smaller; "
          "packed: they need none, but every query carries 48 KiB of keys, and secrecy "
          "rests on ring LWE; auto: whichever costs a client fewer bytes in all, but packed "
          "only where its packing tables take no more than the matrix, or than 256 MiB")
      ->check(CLI::IsMember(std::vector<std::string>{"auto", "hint", "packed"}))
      ->capture_default_str();
  command
      .add_option("--params", params,
                  "Parameter set, which fixes the mode, too (default " + defaults() + ")")
      ->check(CLI::IsMember(names));
  command
      .add_option("--digest-bytes", digest_bytes,
                  "Bytes of the key's digest in a record (default 8): a key that is not there "
                  "is taken for one that is with probability 2^-(8 N)")
      ->check(CLI::Range(1u, kDigestBytesMax));
  command.add_option("--query-bits", query_bits, "Bits sent of each query word")
      ->check(CLI::Range(24u, 32u));
  command.add_option("--response-bits", response_bits, "Bits sent of each response word")
      ->check(CLI::Range(9u, 32u));
  command.add_option("--hint-bits", hint_bits, "Bits kept of each hint word, or of a mask's")
      ->check(CLI::Range(16u, 32u));
}

std::optional<Mode> LayoutOptions::mode() const {
  std::optional<Mode> wanted;
  for (const Mode each : kModes) {
    if (mode_choice == mode_name(each)) wanted = each;
  }
  const LweParams* set = lwe();
  if (set == nullptr) return wanted;
  if (wanted && *wanted != set->mode) {
    throw UsageError("--mode " + mode_choice + " and --params " + params +
                     " contradict each other: " + params + " is for --mode " +
                     std::string(mode_name(set->mode)) + ", and --mode " + mode_choice + " takes " +
                     sets_for(*wanted));
  }
  return set->mode;
}

const LweParams* LayoutOptions::lwe() const {
  return params.empty() ? nullptr : find_lwe_params(params);
}

}  // namespace blindfuse
