// The sizes of one database. All of them follow from a few numbers in its manifest.
#pragma once

#include <cstdint>
#include <optional>

#include "src/arithmetic/fuse_slots.h"
#include "src/arithmetic/lwe_params.h"
#include "src/arithmetic/noise_budget.h"
#include "src/arithmetic/public_divisor.h"
#include "src/arithmetic/record.h"

namespace blindfuse {

// A probabilistic batch code: how a request asks for several keys at once (SealPIR, section 4).
//
// Every key is stored in three of the buckets. A request has one query, with R words for each
// bucket, and so asks for up to keys_per_request keys in different buckets.
struct BatchCode {
  uint32_t keys_per_request = 0;  // K
  uint32_t bucket_count = 0;      // B

  bool operator==(const BatchCode&) const = default;
};

// The buckets of a key, all different.
inline constexpr uint32_t kBucketChoices = 3;

inline constexpr uint32_t kKeysPerRequestMin = 2;
inline constexpr uint32_t kKeysPerRequestMax = 1024;
inline constexpr uint32_t kBucketCountMax = 4096;
inline constexpr uint32_t kBucketsPerKeyMax = 8;  // of a full request

// The usual number of buckets for requests of K keys: 2 K + 8 up to 12 keys, 32 up to 16, 2 K up to
// 48, 96 up to 64, and 1.5 K for more. How often a full request then leaves a key out:
// docs/PARAMETERS.md, section 9.
constexpr uint32_t usual_bucket_count(uint32_t keys_per_request) {
  const uint32_t twice = 2 * keys_per_request;
  if (keys_per_request <= 16) return twice + 8 < 32 ? twice + 8 : 32;
  const uint32_t large = (3 * keys_per_request + 1) / 2;
  const uint32_t most = large > 96 ? large : 96;
  return twice < most ? twice : most;
}

// The most bits of a word of the first level: entries of 2^20 in magnitude, for which an engine's
// sums have room. The noise allows fewer (docs/PARAMETERS.md, section 7).
inline constexpr uint32_t kSecondWordBitsMax = 21;

// The sizes of a packed response's second level, from which a client gets the words of its own
// shard alone (docs/PROTOCOL.md, section 20).
//
// The lowered bodies of the first level, response_bits of each of the S W columns, are a matrix of
// ceil(S / g) rows of g W entries: g shards lie side by side in a row. A query asks for one row,
// and the response is that row, packed again under the query's own key.
struct SecondLevel {
  uint32_t group_shards = 1;    // g
  uint32_t query_bits = 32;     // of each of a query's numbers for rows
  uint32_t mask_bits = 32;      // of each of the 2048 coefficients of a mask
  uint32_t response_bits = 32;  // of each word
  // m, a power of two of at least g W, where a second key for X^(5^(1024 / m)) goes with a query,
  // and m - 1 key switches pack a row. 0: none does, and 1023 of the first key's do.
  uint32_t key_order = 0;

  bool operator==(const SecondLevel&) const = default;
};

enum class DatabaseKind {
  kKeyword,  // keys are byte strings, found through a binary fuse filter
  kIndex,    // keys are 0 .. key_count-1; the shape of FrodoPIR and SimplePIR
};

inline constexpr uint64_t kKeyCountMax = uint64_t{1} << 32;
inline constexpr uint32_t kShardCountMax = 65'536;

// Packed responses have rows in whole blocks only, and at most as many rows as keep their products
// exact (src/arithmetic/ring/ntt.h).
inline constexpr uint32_t kPackedRowsMax = 1u << 24;

// The most rows for queries of 32 bits, which are not rounded. With more samples of ternary errors,
// the attack of Arora and Ge takes less than 2^128 operations (docs/PARAMETERS.md, section 1).
inline constexpr uint32_t kUnroundedRowsMax = 1u << 24;

// The most words of a query, which a client and each waiting query of a server hold in memory.
inline constexpr uint64_t kQueryWordsMax = uint64_t{1} << 26;

// Parts first .. last of a hint, both included.
struct HintParts {
  uint32_t first = 0;
  uint32_t last = 0;

  bool operator==(const HintParts&) const = default;
};

// The place in the second level's matrix where the words of a shard begin.
struct SecondPlace {
  uint32_t row = 0;     // the shard's group
  uint32_t column = 0;  // of its first word

  bool operator==(const SecondPlace&) const = default;
};

struct Layout {
  DatabaseKind kind = DatabaseKind::kKeyword;
  uint64_t key_count = 0;       // m
  uint32_t shard_count = 1;     // S
  uint32_t row_count = 0;       // R
  uint32_t arity = 3;           // rows a key: 3 or 4; 1 in an index database
  uint32_t segment_length = 0;  // L; 0 in an index database
  RecordFormat record;
  const LweParams* lwe = nullptr;
  uint32_t query_bits = 32;
  uint32_t response_bits = 32;
  uint32_t hint_bits = 32;
  std::optional<SecondLevel> second;  // with packed responses only
  // Present only with packed responses of one level, and keys that are byte strings. The shards of
  // bucket i are i S / B .. (i + 1) S / B - 1, and every key has a record in a shard of each of its
  // buckets.
  std::optional<BatchCode> batch;

  uint32_t record_bytes() const { return record.record_bytes(); }                       // W
  uint64_t column_count() const { return uint64_t{shard_count} * record_bytes(); }      // C
  uint64_t shard_matrix_bytes() const { return uint64_t{row_count} * record_bytes(); }  // R W
  uint64_t matrix_bytes() const { return shard_matrix_bytes() * shard_count; }          // R C

  Mode mode() const { return lwe->mode; }
  uint32_t levels() const { return second ? 2 : 1; }
  // Packs of 1024 columns. The last one may have fewer. There are none if responses are not packed.
  uint32_t pack_count() const;
  // The bytes of memory that a server needs in addition to the matrix
  // (src/arithmetic/packing_table.h). 0 if responses are not packed.
  uint64_t packing_table_bytes() const;

  // B, S / B and C / B. There is one bucket if requests are not for several keys.
  uint32_t bucket_count() const { return batch ? batch->bucket_count : 1; }
  uint32_t bucket_shard_count() const { return shard_count / bucket_count(); }
  uint64_t bucket_column_count() const { return column_count() / bucket_count(); }
  // The records of all shards.
  uint64_t record_count() const { return key_count * (batch ? kBucketChoices : 1); }

  // The words of a query: one for each row of each bucket, one bucket after another.
  uint64_t query_word_count() const { return uint64_t{row_count} * bucket_count(); }
  // Bytes of a query's words alone.
  uint64_t query_words_bytes() const;
  // Bytes of a query: its words and, if responses are packed, the packing key after them. With a
  // second level, the short key, if there is one, and the numbers for rows come after that.
  uint64_t query_bytes() const;
  // Bytes of a response: the words of all columns, or the second level's masks and words.
  uint64_t response_bytes() const;

  // Sizes of the second level: its matrix of words, and the packs of a row. Require `second`.
  uint32_t second_row_count() const;     // ceil(S / g)
  uint32_t second_column_count() const;  // g W
  uint32_t second_pack_count() const;
  uint64_t second_query_bytes() const;  // of the numbers for rows
  uint32_t second_key_switches() const;
  // The time does not depend on the shard.
  SecondPlace second_place(uint32_t shard) const;

  // A client's download in each epoch: the hints of all shards, or the masks of all packs. All
  // parts have one size.
  uint32_t hint_part_count() const;
  uint64_t hint_part_words() const;
  uint64_t hint_part_bytes() const;
  uint64_t hint_bytes() const { return hint_part_bytes() * hint_part_count(); }
  // The parts that decoding a record of this shard takes. Their number is the same for every shard,
  // so that a client's actions do not tell where its shard lies in the packs.
  HintParts hint_parts_of(uint32_t shard) const;

  FuseShape fuse() const { return {arity, segment_length, row_count}; }
  NoiseBudget noise() const;  // of the first level
  // log2 of the probability that a look-up decodes wrongly, over all levels.
  double log2_failure() const;

  // True if the errors of a query, with their rounding, have enough values for the query's number
  // of samples (kUnroundedRowsMax), which are those of all buckets.
  bool has_enough_error() const;

  bool operator==(const Layout&) const = default;
};

// Throws InputError, naming the member and its range, when a number is out of range, numbers
// contradict each other, or the failure bound is above 2^-40.
void check_layout(const Layout& layout);

// The place of key i of an index database. The time does not depend on i. The row of an i of 2^32
// and more, which no database has, is only its lower 32 bits.
struct IndexPlace {
  uint32_t shard;
  uint32_t row;
};
constexpr IndexPlace index_place(uint64_t i, const PublicDivisor& shard_count) {
  return {shard_count.remainder(i), static_cast<uint32_t>(shard_count.quotient(i))};
}

}  // namespace blindfuse
