// A keyword database with packed responses for the fake server of client tests: its matrix and its
// products are the slow reference's, its packs are made and used by the server's own code.
#pragma once

#include <algorithm>
#include <array>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <utility>
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
    std::vector<Bytes> masks;
    for (const auto& pack : made->packs_) masks.push_back(pack->mask);
    return ServedDatabase(made->manifest_, made->table_, std::move(masks),
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
                        .second = {}};
    std::vector<reference_pir::Matrix> shards;
    for (uint32_t shard = 0; shard < kShards; ++shard) {
      shards.push_back(matrix_of(shard, values, table_.shards.emplace_back()));
    }
    matrix_ = reference_pir::side_by_side(shards);
    for (size_t first = 0; first < kColumns; first += kPackColumns) {
      const size_t count = std::min(kPackColumns, kColumns - first);
      packs_.push_back(pack_of(reference_pir::slice(matrix_.bytes, first * kRows, count * kRows)));
    }
    table_.packs.resize(packs_.size());
  }

 private:
  static constexpr Salt kSalt = {7};
  static constexpr MatrixSeed kSeed = {8};

  struct Pack {
    // Of up to 1024 columns of the matrix, one after another.
    explicit Pack(const Bytes& columns) : table(kTableWords) {
      static const ring::PublicPolynomials polynomials(kSeed);
      static const HintPolynomials hint(polynomials.blocks(kRows));
      static const PackingTableBuilder builder(polynomials.key_masks());
      std::vector<uint32_t> hints(kPackColumns * ring::kDimension);
      for (size_t c = 0; c < columns.size() / kRows; ++c) {
        hint.compute(
            {reinterpret_cast<const int8_t*>(columns.data()) + c * kRows, kRows},
            ring::MutablePolynomial(hints.data() + c * ring::kDimension, ring::kDimension));
      }
      std::array<uint32_t, ring::kDimension> coefficients;
      builder.build(hints, MutablePackingTable(table), coefficients);
      reference_pir::Words numbers;
      for (const uint32_t each : coefficients)
        numbers.push_back(ring::switch_from_q(each, kMaskBits));
      mask = reference_pir::pack(numbers, kMaskBits);
    }

    std::vector<uint32_t> table;
    Bytes mask;
  };

  // Made once of the same columns, as that takes a while.
  static std::shared_ptr<const Pack> pack_of(const Bytes& columns) {
    static std::map<Bytes, std::shared_ptr<const Pack>> made;  // by the columns' hash
    std::shared_ptr<const Pack>& pack = made[reference_pir::sha256(columns)];
    if (!pack) pack = std::make_shared<const Pack>(columns);
    return pack;
  }

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
    static const ResponsePacker packer;
    constexpr size_t kWordsBytes = kRows * kQueryBits / 8;
    const std::optional<reference_pir::Words> words =
        reference_pir::respond(reference_pir::slice(query, 0, kWordsBytes), kQueryBits, matrix_);
    if (!words) throw InputError("a query is not a bit sequence");
    const PackingKeys keys = PackingKeys::read(std::span(query).subspan(kWordsBytes));
    reference_pir::Words numbers;
    for (size_t p = 0; p < packs_.size(); ++p) {
      const size_t first = p * kPackColumns;
      const size_t count = std::min(kPackColumns, kColumns - first);
      std::array<uint32_t, ring::kDimension> body;
      const ResponsePacker::Task task{keys.words(), std::span(*words).subspan(first, count), body};
      packer.pack(PackingTable(packs_[p]->table), {&task, 1});
      for (size_t c = 0; c < count; ++c)
        numbers.push_back(ring::switch_from_q(body[c], kResponseBits));
    }
    return reference_pir::pack(numbers, kResponseBits);
  }

  Manifest manifest_;
  EpochTable table_;
  reference_pir::Matrix matrix_{kRows, 0};  // of all shards, side by side
  std::vector<std::shared_ptr<const Pack>> packs_;
};

}  // namespace blindfuse
