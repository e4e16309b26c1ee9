// The results of a client's calls.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

namespace blindfuse {

// The result of one look-up, and its cost.
struct Answer {
  std::optional<std::string> value;  // nothing: the key is not there, or was not asked for
  // The key's share, rounded up, where one query asks for several keys.
  uint64_t query_bytes = 0;
  uint64_t response_bytes = 0;
  double prepare_seconds = 0;  // its share of the pass that made its query
  double server_seconds = 0;   // of the whole request, which has request_keys keys
  double decode_seconds = 0;   // the mean over all keys of the look-up
  double total_seconds = 0;    // all of that, and making the query from the prepared one
  uint32_t request_keys = 1;
  // False where requests are for several keys, and other keys of the call took the places of this
  // one. It may be there or not (NotAskedError says how to ask for it).
  bool asked = true;
};

// The result of one synchronization of the hints.
struct SyncResult {
  std::string epoch;
  uint32_t shard_count = 0;
  uint32_t part_count = 0;      // hints of shards, or masks of packs
  uint32_t shards_fetched = 0;  // of those parts
  uint64_t bytes_fetched = 0;   // of them, and of the table of shards and packs
  uint64_t hint_bytes = 0;      // of all hints of shards, or masks of packs
  double seconds = 0;
};

// The requests of a client so far, and the bytes of their bodies and of the bodies of their
// responses. Excludes headers and TLS. A query counts whole, even if its connection breaks, and a
// download that is repeated over a new connection counts once.
struct TransferStats {
  uint64_t requests = 0;
  uint64_t bytes_sent = 0;
  uint64_t bytes_received = 0;
};

// The signer of the database, as its last manifest names it.
struct SignerStatus {
  std::string signer;       // the public key, 64 hex digits; empty: the manifest is not signed
  uint64_t sequence = 0;    // the manifest's number: a larger one is newer
  uint64_t time = 0;        // when it was signed, in seconds since 1970 UTC
  bool is_checked = false;  // the signature is right; false where nothing can check it (browsers)
  // One line for a client without ClientOptions::server_key. It says that the signer changed, that
  // the manifest is not signed any more, or that it is older than one seen before. Empty if nothing
  // of this is the case.
  std::string warning;
};

// The properties of one epoch of a database.
struct DatabaseInfo {
  std::string epoch;      // its identity: 64 hex digits
  bool is_index = false;  // keys are the numbers 0 .. key_count - 1, not byte strings
  uint64_t key_count = 0;
  uint32_t value_bytes_max = 0;
  std::string parameter_set;  // "lwe-1774"
  std::string mode;        // "hint": clients download the hints of all shards; "packed": the masks
                           // of all packs, which are smaller, and queries carry a packing key
  uint32_t row_count = 0;  // of every shard: the words of a query, for each bucket
  uint32_t shard_count = 0;
  uint64_t query_bytes = 0;
  uint64_t response_bytes = 0;
  uint64_t hint_bytes = 0;  // hints of all shards, or masks of all packs: a new client's download
  double failure_log2 = 0;  // a look-up goes wrong with at most 2 to this
  // K, where one query asks for several keys: a look-up of n keys then makes n / K requests,
  // rounded up, of one query each. 1 in other databases.
  uint32_t keys_per_request = 1;
  uint32_t bucket_count = 1;  // a query has row_count words for each
  // The number of keys that fill whole requests and whose answers take about 256 MiB of memory,
  // which Client::look_up keeps until all have come; at least those of one request. Longer lists
  // are better given in pieces of this size.
  uint64_t keys_at_once = 1;
};

}  // namespace blindfuse
