#include "host/commands/layout_options.h"

#include <vector>

#include "src/layout.h"

namespace blindfuse {

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
  command.add_option("--params", params, "LWE parameter set (default " + names.front() + ")")
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
  command.add_option("--hint-bits", hint_bits, "Bits kept of each hint word")
      ->check(CLI::Range(16u, 32u));
}

const LweParams* LayoutOptions::lwe() const {
  return params.empty() ? &lwe_params().front() : find_lwe_params(params);
}

}  // namespace blindfuse
