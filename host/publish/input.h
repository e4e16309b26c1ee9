// Reads the operator's pairs into a build: checks, hashes, spools and surveys them.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "host/ingest/key_value_source.h"
#include "host/ingest/spool.h"
#include "host/system/worker_threads.h"
#include "src/arithmetic/layout.h"

namespace blindfuse {

enum class LongValues { kError, kTruncate };

struct InputOptions {
  DatabaseKind kind = DatabaseKind::kKeyword;
  DuplicatePolicy on_duplicate = DuplicatePolicy::kError;
  uint32_t value_bytes_max = kValueBytesMax;
  LongValues long_values = LongValues::kError;
  bool values_are_text = true;                      // truncate between characters (UTF-8)
  TextEncoding key_encoding = TextEncoding::kUtf8;  // of keys in messages
};

// The name of a source, for messages.
struct SourceName {
  std::string name;
  std::string place_unit;
};

inline constexpr size_t kSampleCount = 16;

struct Input {
  std::unique_ptr<Spool> spool;
  std::vector<SourceName> sources;
  std::map<uint64_t, std::string>
      sample_keys;  // by slot hash: the kSampleCount lowest, so any part of the database
  uint64_t truncated_values = 0;
  uint64_t bytes = 0;                               // of keys and values
  TextEncoding key_encoding = TextEncoding::kUtf8;  // of keys in messages
};

// Reads all sources to their end, or until the spool has found a duplicate. In an index database,
// pair i of the whole input gets KeyHash{spread(i), i, 0}: its shard is not known yet. Throws
// InputError if a source refuses a pair, if values are too long, for more than 2^32 pairs, and if
// there is no pair at all. Throws ResourceError if the disk is full. `spool` is empty, and has the
// policy of `options`.
Input read_input(const std::vector<std::unique_ptr<KeyValueSource>>& sources, const Salt& salt,
                 const InputOptions& options, std::unique_ptr<Spool> spool);

// Returns the entries of an index database after its shards are known: hash = {lowest shard_hash of
// the shard, row, 0}. They go into `result`, which is empty, in any order. Its policy is kNone.
std::unique_ptr<Spool> spool_by_shard(const Spool& spool, uint32_t shard_count,
                                      std::unique_ptr<Spool> result, WorkerThreads& threads);

// The entries of a database with requests for several keys, after its shards are known: three for
// each key, one for each of its buckets, with hash.shard_hash = the lowest of the shard in that
// bucket. They go into `result`, which is empty, in any order. Its policy is kNone. shard_count: of
// all buckets, a multiple of bucket_count.
std::unique_ptr<Spool> spool_by_bucket(const Spool& spool, uint32_t shard_count,
                                       uint32_t bucket_count, std::unique_ptr<Spool> result,
                                       WorkerThreads& threads);

// The lowest shard_hash x with shard_of(x, shard_count) == shard: ceil(shard * 2^64 / shard_count);
// shard < shard_count.
uint64_t lowest_shard_hash(uint32_t shard, uint32_t shard_count);

// The partition of read_input's spool in which pair i of an index database lies.
uint32_t index_partition(uint64_t i);

// "words.tsv, line 17"
std::string place_name(const Input& input, uint32_t source, uint64_t place);

// The survey of the spooled input: the number of keys, the lengths of their values, and the loads
// of the shards.
struct Survey {
  uint64_t key_count = 0;  // after duplicates are resolved
  uint64_t duplicates_dropped = 0;
  uint32_t shortest_value = 0;  // bytes, as are the next three
  uint32_t median_value = 0;
  uint32_t percentile99_value = 0;
  uint32_t longest_value = 0;
};

// Memory: a KeyHashSet, and 16 bytes a key for each thread's partition. Throws InputError if a key
// comes twice and the policy is kError. The message names the key and both places of the first
// duplicate in the order of the input.
Survey survey_input(const Input& input, DuplicatePolicy policy, WorkerThreads& threads);

// The keys of the fullest shard of this layout, whose key_count is right. Where requests are for
// several keys, each key counts in a shard of each of its three buckets.
uint64_t fullest_shard(const Spool& spool, const Layout& layout, WorkerThreads& threads);

}  // namespace blindfuse
