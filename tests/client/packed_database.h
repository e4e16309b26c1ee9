// A keyword database with packed responses for the fake server of client tests: its matrix and its
// products are the slow reference's, its packs are made and used by the server's own code.
#pragma once

#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "src/base/errors.h"
#include "tests/client/fake_server.h"
#include "tests/client/served_packs.h"

namespace blindfuse {

class PackedDatabase {
 public:
  using Values = std::map<std::string, std::string>;  // of keys

  static constexpr uint32_t kRows = 2048;
  static constexpr uint32_t kShards = 3;
  static constexpr uint32_t kDigestBytes = 8;
  static constexpr uint32_t kLengthBytes = 2;
  static constexpr uint32_t kValueBytes = 591;  // the longest
  // Two packs, of which the second is not full: shard 0 lies in the first, shard 2 in the second,
  // and byte 423 of shard 1's records is the first in the second.
  static constexpr size_t kRecordBytes = kDigestBytes + kLengthBytes + kValueBytes;
  static constexpr size_t kColumns = kShards * kRecordBytes;
  static constexpr uint32_t kQueryBits = 28;
  static constexpr uint32_t kResponseBits = 11;
  static constexpr uint32_t kMaskBits = 18;

  static ServedDatabase serve(const Values& values) {
    const auto made = std::make_shared<const PackedDatabase>(values);
    return ServedDatabase(made->manifest_, made->table_, made->packs_->masks(),
                          [made](const Bytes& queries) { return made->respond(queries); });
  }

  static uint32_t shard_of(const std::string& key) {
    return static_cast<uint32_t>(hash_of(key).shard(kShards));
  }

  explicit PackedDatabase(const Values& values) {
    manifest_.salt = kSalt;
    manifest_.seed = kSeed;
    manifest_.layout = {.kind = DatabaseKind::kKeyword,
                        .key_count = values.size(),
                        .shard_count = kShards,
                        .row_count = kRows,
                        .arity = 3,
                        .segment_length = 256,
                        .record = {kDigestBytes, kLengthBytes, kValueBytes},
                        .lwe = find_lwe_params("ring-2048"),
                        .query_bits = kQueryBits,
                        .response_bits = kResponseBits,
                        .hint_bits = kMaskBits,
                        .second = {},
                        .batch = {}};
    std::vector<reference_pir::Matrix> shards;
    for (uint32_t shard = 0; shard < kShards; ++shard) {
      shards.push_back(matrix_of(shard, values, table_.shards.emplace_back()));
    }
    matrix_ = reference_pir::side_by_side(shards);
    packs_.emplace(kSeed, kMaskBits, matrix_);
    table_.packs.resize(manifest_.layout.pack_count());
  }

 private:
  static constexpr Salt kSalt = {7};
  static constexpr MatrixSeed kSeed = {8};

  static reference_pir::KeyHash hash_of(const std::string& key) {
    return reference_pir::key_hash({kSalt.begin(), kSalt.end()}, reference_pir::bytes_of(key));
  }

  // Rows whose sums are the records of the shard's keys.
  static reference_pir::Matrix matrix_of(uint32_t shard, const Values& values, ShardEntry& entry) {
    const reference_pir::FuseShape shape{kRows, 256, 3};
    const reference_pir::RecordFormat format{kDigestBytes, kLengthBytes, kValueBytes};
    for (;; ++entry.filter_seed) {
      std::vector<reference_pir::FilterEntry> entries;
      for (const auto& [key, value] : values) {
        if (shard_of(key) != shard) continue;
        const reference_pir::KeyHash hash = hash_of(key);
        entries.push_back({reference_pir::rows_of_key(hash.x1, entry.filter_seed, shape),
                           reference_pir::encode_record(format, hash.digest(kDigestBytes),
                                                        reference_pir::bytes_of(value))});
      }
      entry.key_count = entries.size();
      auto matrix = reference_pir::build_filter(entries, kRows, kRecordBytes);
      if (matrix) return std::move(*matrix);
    }
  }

  Bytes respond(const Bytes& queries) const {
    const size_t query_bytes = manifest_.layout.query_bytes();
    Bytes responses;
    for (size_t at = 0; at < queries.size(); at += query_bytes) {
      using reference_pir::operator+;
      responses = std::move(responses) + respond_to(reference_pir::slice(queries, at, query_bytes));
    }
    return responses;
  }

  Bytes respond_to(const Bytes& query) const {
    constexpr size_t kWordsBytes = kRows * kQueryBits / 8;
    const std::optional<reference_pir::Words> words =
        reference_pir::respond(reference_pir::slice(query, 0, kWordsBytes), kQueryBits, matrix_);
    if (!words) throw InputError("a query is not a bit sequence");
    return packs_->respond(*words, reference_pir::slice(query, kWordsBytes, ring::kKeyBytes),
                           kResponseBits);
  }

  Manifest manifest_;
  EpochTable table_;
  reference_pir::Matrix matrix_{kRows, 0};  // of all shards, side by side
  std::optional<ServedPacks> packs_;
};

}  // namespace blindfuse
