// A database with requests for several keys, for the fake server of client tests: its buckets, its
// matrix and its products are computed plainly, its packs are made and used by the server's own
// code.
#pragma once

#include <array>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "src/base/errors.h"
#include "tests/client/fake_server.h"
#include "tests/client/served_packs.h"

namespace blindfuse {

class BatchDatabase {
 public:
  using Values = std::map<std::string, std::string>;  // of keys

  static constexpr uint32_t kKeysPerRequest = 4;
  static constexpr uint32_t kBuckets = 6;
  static constexpr uint32_t kBucketShards = 2;
  static constexpr uint32_t kShards = kBuckets * kBucketShards;
  static constexpr uint32_t kRows = 2048;
  static constexpr uint32_t kDigestBytes = 8;
  static constexpr uint32_t kLengthBytes = 1;
  static constexpr uint32_t kValueBytes = 116;  // the longest
  // Two packs: shard 8, which is of bucket 4, begins in the first and ends in the second.
  static constexpr size_t kRecordBytes = kDigestBytes + kLengthBytes + kValueBytes;
  static constexpr size_t kColumns = kShards * kRecordBytes;
  static constexpr uint32_t kQueryBits = 28;
  static constexpr uint32_t kResponseBits = 11;
  static constexpr uint32_t kMaskBits = 18;
  static constexpr size_t kWordsBytes = kBuckets * kRows * kQueryBits / 8;
  static constexpr size_t kQueryBytes = kWordsBytes + 24'576;
  static constexpr size_t kResponseBytes = (kColumns * kResponseBits + 7) / 8;

  static ServedDatabase serve(const Values& values, uint32_t keys_per_request = kKeysPerRequest) {
    const auto made = std::make_shared<const BatchDatabase>(values, keys_per_request);
    return ServedDatabase(made->manifest_, made->table_, made->packs_->masks(),
                          [made](const Bytes& queries) { return made->respond(queries); });
  }

  // As docs/PROTOCOL.md says, section 21: each word of the hash picks one of the buckets that are
  // left.
  static std::array<uint32_t, 3> buckets_of(const std::string& key) {
    using reference_pir::operator+;
    const Bytes chosen =
        reference_pir::sha256(reference_pir::bytes_of("blindfuse/buckets/1") + hash_of(key).h);
    std::vector<uint32_t> left;
    for (uint32_t bucket = 0; bucket < kBuckets; ++bucket) left.push_back(bucket);
    std::array<uint32_t, 3> buckets;
    for (size_t i = 0; i < buckets.size(); ++i) {
      const uint64_t word =
          reference_pir::from_little_endian(reference_pir::slice(chosen, 8 * i, 8));
      const uint64_t picked = reference_pir::mulhi(word, left.size());
      buckets[i] = left[picked];
      left.erase(left.begin() + static_cast<std::ptrdiff_t>(picked));
    }
    return buckets;
  }

  // Keys whose three buckets are these.
  static std::vector<std::string> keys_of_buckets(const std::set<uint32_t>& buckets, size_t count) {
    std::vector<std::string> keys;
    for (int i = 0; keys.size() < count; ++i) {
      const std::string key = "colliding-" + std::to_string(i);
      const auto own = buckets_of(key);
      if (std::set<uint32_t>(own.begin(), own.end()) == buckets) keys.push_back(key);
    }
    return keys;
  }

  explicit BatchDatabase(const Values& values, uint32_t keys_per_request = kKeysPerRequest) {
    manifest_.salt = kSalt;
    manifest_.seed = kSeed;
    manifest_.layout = {
        .kind = DatabaseKind::kKeyword,
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
        .batch = BatchCode{.keys_per_request = keys_per_request, .bucket_count = kBuckets}};
    std::vector<reference_pir::Matrix> all;
    for (uint32_t bucket = 0; bucket < kBuckets; ++bucket) {
      std::vector<reference_pir::Matrix> shards;
      for (uint32_t shard = 0; shard < kBucketShards; ++shard) {
        shards.push_back(matrix_of(bucket, shard, values, table_.shards.emplace_back()));
      }
      buckets_.push_back(reference_pir::side_by_side(shards));
    }
    packs_.emplace(kSeed, kMaskBits, reference_pir::side_by_side(buckets_), [](size_t column) {
      return static_cast<uint32_t>(column / (kBucketShards * kRecordBytes));
    });
    table_.packs.resize(manifest_.layout.pack_count());
  }

  const Manifest& manifest() const { return manifest_; }

 private:
  static constexpr Salt kSalt = {9};
  static constexpr MatrixSeed kSeed = {10};

  static reference_pir::KeyHash hash_of(const std::string& key) {
    return reference_pir::key_hash({kSalt.begin(), kSalt.end()}, reference_pir::bytes_of(key));
  }

  static bool is_in(const std::string& key, uint32_t bucket, uint32_t shard) {
    for (const uint32_t own : buckets_of(key)) {
      if (own == bucket) return hash_of(key).shard(kBucketShards) == shard;
    }
    return false;
  }

  // Rows whose sums are the records of the keys in a shard of a bucket.
  static reference_pir::Matrix matrix_of(uint32_t bucket, uint32_t shard, const Values& values,
                                         ShardEntry& entry) {
    const reference_pir::FuseShape shape{kRows, 256, 3};
    const reference_pir::RecordFormat format{kDigestBytes, kLengthBytes, kValueBytes};
    // Every shard has a seed of its own.
    for (entry.filter_seed = 1000 * (kBucketShards * bucket + shard);; ++entry.filter_seed) {
      std::vector<reference_pir::FilterEntry> entries;
      for (const auto& [key, value] : values) {
        if (!is_in(key, bucket, shard)) continue;
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
    Bytes responses;
    for (size_t at = 0; at < queries.size(); at += kQueryBytes) {
      using reference_pir::operator+;
      responses = std::move(responses) + respond_to(reference_pir::slice(queries, at, kQueryBytes));
    }
    return responses;
  }

  // The columns of a bucket times its own words of the query.
  Bytes respond_to(const Bytes& query) const {
    const auto words = reference_pir::unpack_and_restore(
        reference_pir::slice(query, 0, kWordsBytes), kQueryBits, kBuckets * kRows);
    if (!words) throw InputError("a query is not a bit sequence");
    reference_pir::Words products;
    for (size_t bucket = 0; bucket < kBuckets; ++bucket) {
      const auto first = words->begin() + static_cast<std::ptrdiff_t>(bucket * kRows);
      const auto own =
          reference_pir::multiply(reference_pir::Words(first, first + kRows), buckets_[bucket]);
      products.insert(products.end(), own.begin(), own.end());
    }
    return packs_->respond(products, reference_pir::slice(query, kWordsBytes, ring::kKeyBytes),
                           kResponseBits);
  }

  Manifest manifest_;
  EpochTable table_;
  std::vector<reference_pir::Matrix> buckets_;  // of each, its shards side by side
  std::optional<ServedPacks> packs_;
};

}  // namespace blindfuse
