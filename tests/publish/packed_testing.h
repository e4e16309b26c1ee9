// What the tests of packed databases share: one of two packs, what its directory has to hold, and
// look-ups with all the cryptography.
#pragma once

#include <algorithm>
#include <cstdint>
#include <fstream>
#include <random>
#include <set>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "client/decoder.h"
#include "client/ring_query.h"
#include "host/database/directory.h"
#include "host/server/serving/batch_scheduler.h"
#include "src/base/hex.h"
#include "tests/client/seeded_random.h"
#include "tests/publish/builder_testing.h"
#include "tests/server/ask_and_wait.h"
#include "tests/support.h"

namespace blindfuse::builder_testing {

// 1023 switches of three digits at 2048 points, four bytes each.
inline constexpr uint64_t kPackFileBytes = 25'141'248;

// Five shards of 300 columns, which are two packs of 1024 and of 476: shards 0, 1 and 2 lie in the
// first, 3 in both, and 4 in the second.
inline constexpr uint32_t kTwoPackShards = 5;
inline constexpr uint32_t kTwoPackRecordBytes = 300;
inline constexpr uint32_t kTwoPackRows = 2048;  // the fewest that there can be

// Values of up to 290 bytes; with eight of digest and two of length, records have 300.
inline Pairs two_pack_pairs() {
  std::mt19937 random(20);
  Pairs pairs;
  for (int i = 0; i < 300; ++i) {
    std::string value(random() % 291, '\0');
    for (char& c : value) c = static_cast<char>(random());
    pairs.emplace_back("key " + std::to_string(i), value);
  }
  pairs.front().second.assign(290, 'x');
  return pairs;
}

inline BuildOptions two_pack_options() {
  BuildOptions options;
  options.mode = Mode::kPacked;
  options.shard_count = kTwoPackShards;
  options.random = fixed_random;
  return options;
}

// What a database's directory says of itself, without its large files.
struct Epoch {
  Manifest manifest;
  EpochTable table;
};

inline Epoch read_epoch(const std::filesystem::path& root) {
  const DatabaseDirectory directory(root);
  const Manifest manifest = directory.read_manifest().manifest;
  return {manifest, parse_epoch_table(directory.read_table(manifest), manifest.layout)};
}

// A pair of this shard, but not the first pair, whose value is the longest.
inline size_t place_in_shard(const Pairs& pairs, const Manifest& manifest, uint32_t shard) {
  for (size_t i = 1; i < pairs.size(); ++i) {
    const KeyHash hash = key_hash(manifest.salt, pairs[i].first);
    if (shard_of(hash.shard_hash, manifest.layout.shard_count) == shard) return i;
  }
  std::abort();
}

inline std::filesystem::path pack_file(const std::filesystem::path& root, const PackEntry& pack) {
  return root / "packs" / (encode_hex(pack.table) + ".pack");
}
inline std::filesystem::path mask_file(const std::filesystem::path& root, const PackEntry& pack) {
  return root / "hints" / (encode_hex(pack.mask) + ".hint");
}

// The files that belong to this epoch; `has_history`: there were others before it.
inline std::set<std::string> files_of(const Epoch& epoch, bool has_history) {
  std::set<std::string> files = {"manifest.json", ".lock",
                                 "tables/" + encode_hex(epoch.manifest.table) + ".table",
                                 "samples/" + encode_hex(epoch.manifest.samples) + ".json"};
  if (has_history) files.insert("retired.txt");
  for (const ShardEntry& shard : epoch.table.shards) {
    files.insert("shards/" + encode_hex(shard.matrix) + ".matrix");
    if (epoch.table.packs.empty()) files.insert("hints/" + encode_hex(shard.hint) + ".hint");
  }
  for (const PackEntry& pack : epoch.table.packs) {
    files.insert("packs/" + encode_hex(pack.table) + ".pack");
    files.insert("hints/" + encode_hex(pack.mask) + ".hint");
  }
  return files;
}

inline std::set<std::string> files_in(const std::filesystem::path& root) {
  std::set<std::string> files;
  for (const auto& entry : std::filesystem::recursive_directory_iterator(root)) {
    if (entry.is_regular_file()) {
      files.insert(std::filesystem::relative(entry.path(), root).string());
    }
  }
  return files;
}

inline void flip_byte(const std::filesystem::path& path, uint64_t at) {
  std::fstream file(path, std::ios::in | std::ios::out | std::ios::binary);
  file.seekg(static_cast<std::streamoff>(at));
  const int byte = file.get();
  file.seekp(static_cast<std::streamoff>(at));
  file.put(static_cast<char>(byte ^ 1));
}

inline std::unique_ptr<BatchScheduler> scheduler_of(const LoadedDatabase& database) {
  const BatchLimits limits{.batch_max = 2, .queue_max = 2};
  return std::make_unique<BatchScheduler>(*database.engine, database.manifest.layout, limits,
                                          nullptr, database.packing_tables);
}

// The record of these rows, as a client gets it. The seed is that of its secrets.
inline std::vector<uint8_t> ask_for_record(const LoadedDatabase& database,
                                           BatchScheduler& scheduler, uint32_t shard,
                                           std::span<const uint32_t> rows, uint64_t seed) {
  const Layout& layout = database.manifest.layout;
  PreparedQuery prepared =
      std::move(prepare_queries_for(database.manifest, 1, 1, seeded_random(seed)).front());
  std::vector<uint8_t> query(layout.query_bytes());
  DecodingSecret secret = std::move(prepared).encrypt(rows, layout.query_bits, query);
  const std::string response = server_testing::ask_and_wait(scheduler, query);
  const SecretBuffer<uint32_t> words = words_of_shard(layout, shard, support::as_bytes(response));
  const HintParts parts = layout.hint_parts_of(shard);
  std::vector<uint8_t> masks;
  for (uint32_t pack = parts.first; pack <= parts.last; ++pack) {
    const std::vector<uint8_t>& mask = *database.downloads->hints.at(pack);
    masks.insert(masks.end(), mask.begin(), mask.end());
  }
  return decode(std::move(secret), layout, shard, words.span(), masks);
}

// The value of a key, in the same way.
inline std::optional<std::string> ask(const LoadedDatabase& database, BatchScheduler& scheduler,
                                      const std::string& key, uint64_t seed) {
  const Layout& layout = database.manifest.layout;
  const KeyHash hash = key_hash(database.manifest.salt, key);
  const uint32_t shard = shard_of(hash.shard_hash, layout.shard_count);
  const auto rows =
      fuse_rows(layout.fuse(), database.table.shards[shard].filter_seed, hash.slot_hash);
  const std::vector<uint8_t> record =
      ask_for_record(database, scheduler, shard, std::span(rows).first(layout.arity), seed);
  return decode_record(layout.record, hash.digest, record);
}

}  // namespace blindfuse::builder_testing
