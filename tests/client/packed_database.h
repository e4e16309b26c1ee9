// Keyword databases with packed responses for the fake server of client tests: their matrices and
// products are the slow reference's, their packs are made and used by the server's own code.
#pragma once

#include <algorithm>
#include <array>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <vector>

#include "host/cpu/packing/hint_polynomials.h"
#include "host/cpu/packing/packing_keys.h"
#include "host/cpu/packing/packing_table_builder.h"
#include "host/cpu/packing/response_packer.h"
#include "src/arithmetic/ring/modulus_switch.h"
#include "src/base/errors.h"
#include "src/protocol/public_polynomials.h"
#include "tests/client/fake_server.h"

namespace blindfuse {

using KeyValues = std::map<std::string, std::string>;

// The packs of a database, in buckets of columns.
class ServedPacks {
 public:
  using Bytes = reference_pir::Bytes;

  // Of the columns of a matrix, one after another; each bucket has bucket_columns of them.
  ServedPacks(const MatrixSeed& seed, uint32_t mask_bits, const reference_pir::Matrix& matrix,
              size_t bucket_columns)
      : column_count_(matrix.column_count) {
    const size_t rows = matrix.row_count;
    for (size_t first = 0; first < column_count_; first += kPackColumns) {
      const size_t count = std::min(kPackColumns, column_count_ - first);
      std::vector<uint32_t> buckets;
      for (size_t c = 0; c < count; ++c) {
        buckets.push_back(static_cast<uint32_t>((first + c) / bucket_columns));
      }
      packs_.push_back(pack_of(seed, mask_bits,
                               reference_pir::slice(matrix.bytes, first * rows, count * rows), rows,
                               buckets));
    }
  }

  // In the clients' form.
  std::vector<Bytes> masks() const {
    std::vector<Bytes> masks;
    for (const auto& pack : packs_) masks.push_back(pack->mask);
    return masks;
  }

  // The response, from the products of all columns and the query's packing key.
  Bytes respond(const reference_pir::Words& products, const Bytes& packing_key,
                uint32_t response_bits) const {
    static const ResponsePacker packer;
    const PackingKeys keys = PackingKeys::read(packing_key);
    reference_pir::Words numbers;
    for (size_t p = 0; p < packs_.size(); ++p) {
      const size_t first = p * kPackColumns;
      const size_t count = std::min(kPackColumns, column_count_ - first);
      std::array<uint32_t, ring::kDimension> body;
      const ResponsePacker::Task task{keys.words(), std::span(products).subspan(first, count),
                                      body};
      packer.pack(PackingTable(packs_[p]->table), {&task, 1});
      for (size_t c = 0; c < count; ++c)
        numbers.push_back(ring::switch_from_q(body[c], response_bits));
    }
    return reference_pir::pack(numbers, response_bits);
  }

 private:
  struct Pack {
    // Of up to 1024 columns of the matrix, one after another.
    Pack(const MatrixSeed& seed, uint32_t mask_bits, const Bytes& columns, size_t rows,
         const std::vector<uint32_t>& buckets)
        : table(kTableWords) {
      const ring::PublicPolynomials polynomials(seed);
      const PackingTableBuilder builder(polynomials.key_masks());
      std::optional<HintPolynomials> hint;
      std::vector<uint32_t> hints(kPackColumns * ring::kDimension);
      for (size_t c = 0; c < buckets.size(); ++c) {
        if (c == 0 || buckets[c] != buckets[c - 1]) {
          hint.emplace(polynomials.blocks(static_cast<uint32_t>(rows), buckets[c]));
        }
        hint->compute(
            {reinterpret_cast<const int8_t*>(columns.data()) + c * rows, rows},
            ring::MutablePolynomial(hints.data() + c * ring::kDimension, ring::kDimension));
      }
      std::array<uint32_t, ring::kDimension> coefficients;
      builder.build(hints, MutablePackingTable(table), coefficients);
      reference_pir::Words numbers;
      for (const uint32_t each : coefficients)
        numbers.push_back(ring::switch_from_q(each, mask_bits));
      mask = reference_pir::pack(numbers, mask_bits);
    }

    std::vector<uint32_t> table;
    Bytes mask;
  };

  // Made once of the same columns, as that takes a while.
  static std::shared_ptr<const Pack> pack_of(const MatrixSeed& seed, uint32_t mask_bits,
                                             const Bytes& columns, size_t rows,
                                             const std::vector<uint32_t>& buckets) {
    static std::map<Bytes, std::shared_ptr<const Pack>> made;  // by the hash of what it is of
    using reference_pir::operator+;
    const Bytes name = Bytes(seed.begin(), seed.end()) + Bytes(1, static_cast<uint8_t>(mask_bits)) +
                       reference_pir::bytes_of_words(buckets) + columns;
    std::shared_ptr<const Pack>& pack = made[reference_pir::sha256(name)];
    if (!pack) pack = std::make_shared<const Pack>(seed, mask_bits, columns, rows, buckets);
    return pack;
  }

  size_t column_count_;
  std::vector<std::shared_ptr<const Pack>> packs_;
};

struct PackedShape {
  uint32_t buckets;
  uint32_t bucket_shards;
  uint32_t length_bytes;
  uint32_t value_bytes;  // the longest
};

// One bucket is a database whose requests are for one key.
template <PackedShape kShape>
class TestedDatabase {
 public:
  static constexpr uint32_t kKeysPerRequest = 4;
  static constexpr uint32_t kBuckets = kShape.buckets;
  static constexpr uint32_t kBucketShards = kShape.bucket_shards;
  static constexpr uint32_t kShards = kBuckets * kBucketShards;
  static constexpr uint32_t kRows = 2048;
  static constexpr uint32_t kDigestBytes = 8;
  static constexpr uint32_t kValueBytes = kShape.value_bytes;
  static constexpr size_t kRecordBytes = kDigestBytes + kShape.length_bytes + kValueBytes;
  static constexpr size_t kColumns = kShards * kRecordBytes;
  static constexpr uint32_t kQueryBits = 28;
  static constexpr uint32_t kResponseBits = 11;
  static constexpr uint32_t kMaskBits = 18;
  static constexpr size_t kWordsBytes = kBuckets * kRows * kQueryBits / 8;
  static constexpr size_t kQueryBytes = kWordsBytes + 24'576;
  static constexpr size_t kResponseBytes = (kColumns * kResponseBits + 7) / 8;

  static ServedDatabase serve(const KeyValues& values,
                              uint32_t keys_per_request = kKeysPerRequest) {
    const auto made = std::make_shared<const TestedDatabase>(values, keys_per_request);
    return ServedDatabase(made->manifest_, made->table_, made->packs_->masks(),
                          [made](const Bytes& queries) { return made->respond(queries); });
  }

  // Within its buckets.
  static uint32_t shard_of(const std::string& key) {
    return static_cast<uint32_t>(hash_of(key).shard(kBucketShards));
  }

  // As docs/PROTOCOL.md says, section 21: each word of the hash picks one of the buckets that are
  // left.
  static std::set<uint32_t> buckets_of(const std::string& key) {
    if (kBuckets == 1) return {0};
    using reference_pir::operator+;
    const Bytes chosen =
        reference_pir::sha256(reference_pir::bytes_of("blindfuse/buckets/1") + hash_of(key).h);
    std::vector<uint32_t> left;
    for (uint32_t bucket = 0; bucket < kBuckets; ++bucket) left.push_back(bucket);
    std::set<uint32_t> buckets;
    for (size_t i = 0; i < 3; ++i) {
      const uint64_t word =
          reference_pir::from_little_endian(reference_pir::slice(chosen, 8 * i, 8));
      const auto picked =
          left.begin() + static_cast<ptrdiff_t>(reference_pir::mulhi(word, left.size()));
      buckets.insert(*picked);
      left.erase(picked);
    }
    return buckets;
  }

  // Keys whose three buckets are these.
  static std::vector<std::string> keys_of_buckets(const std::set<uint32_t>& buckets, size_t count) {
    std::vector<std::string> keys;
    for (int i = 0; keys.size() < count; ++i) {
      const std::string key = "colliding-" + std::to_string(i);
      if (buckets_of(key) == buckets) keys.push_back(key);
    }
    return keys;
  }

  explicit TestedDatabase(const KeyValues& values, uint32_t keys_per_request = kKeysPerRequest) {
    manifest_.salt = kSalt;
    manifest_.seed = kSeed;
    manifest_.layout = {.kind = DatabaseKind::kKeyword,
                        .key_count = values.size(),
                        .shard_count = kShards,
                        .row_count = kRows,
                        .arity = 3,
                        .segment_length = 256,
                        .record = {kDigestBytes, kShape.length_bytes, kValueBytes},
                        .lwe = find_lwe_params("ring-2048"),
                        .query_bits = kQueryBits,
                        .response_bits = kResponseBits,
                        .hint_bits = kMaskBits,
                        .second = {},
                        .batch = {}};
    if (kBuckets > 1) {
      manifest_.layout.batch =
          BatchCode{.keys_per_request = keys_per_request, .bucket_count = kBuckets};
    }
    for (uint32_t bucket = 0; bucket < kBuckets; ++bucket) {
      std::vector<reference_pir::Matrix> shards;
      for (uint32_t shard = 0; shard < kBucketShards; ++shard) {
        shards.push_back(matrix_of(bucket, shard, values, table_.shards.emplace_back()));
      }
      buckets_.push_back(reference_pir::side_by_side(shards));
    }
    packs_.emplace(kSeed, kMaskBits, reference_pir::side_by_side(buckets_),
                   kBucketShards * kRecordBytes);
    table_.packs.resize(manifest_.layout.pack_count());
  }

  const Manifest& manifest() const { return manifest_; }

 private:
  static constexpr Salt kSalt = {9};
  static constexpr MatrixSeed kSeed = {10};

  static reference_pir::KeyHash hash_of(const std::string& key) {
    return reference_pir::key_hash({kSalt.begin(), kSalt.end()}, reference_pir::bytes_of(key));
  }

  // Rows whose sums are the records of the keys in a shard of a bucket.
  static reference_pir::Matrix matrix_of(uint32_t bucket, uint32_t shard, const KeyValues& values,
                                         ShardEntry& entry) {
    const reference_pir::FuseShape shape{kRows, 256, 3};
    const reference_pir::RecordFormat format{kDigestBytes, kShape.length_bytes, kValueBytes};
    // Every shard has a seed of its own.
    for (entry.filter_seed = 1000 * (kBucketShards * bucket + shard);; ++entry.filter_seed) {
      std::vector<reference_pir::FilterEntry> entries;
      for (const auto& [key, value] : values) {
        if (shard_of(key) != shard || !buckets_of(key).contains(bucket)) continue;
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

// Two packs, of which the second is not full: shard 0 lies in the first, shard 2 in the second, and
// byte 423 of shard 1's records is the first in the second.
using PackedDatabase = TestedDatabase<PackedShape{
    .buckets = 1, .bucket_shards = 3, .length_bytes = 2, .value_bytes = 591}>;
// Two packs: shard 8, which is of bucket 4, begins in the first and ends in the second.
using BatchDatabase = TestedDatabase<PackedShape{
    .buckets = 6, .bucket_shards = 2, .length_bytes = 1, .value_bytes = 116}>;

}  // namespace blindfuse
