#include "src/arithmetic/layout.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cstdio>
#include <numeric>
#include <string>

#include "src/arithmetic/bit_sequence.h"
#include "src/arithmetic/lwe_params.h"
#include "src/arithmetic/packing_table.h"
#include "src/arithmetic/ring/packing_key_format.h"
#include "src/arithmetic/second_level_spec.h"
#include "src/base/errors.h"

namespace blindfuse {
namespace {

void check_range(const char* member, uint64_t value, uint64_t low, uint64_t high) {
  if (value >= low && value <= high) return;
  throw InputError(std::string(member) + " is " + std::to_string(value) + "; it must be " +
                   std::to_string(low) + " to " + std::to_string(high));
}

void check(bool holds, const char* what) {
  if (!holds) throw InputError(what);
}

std::string one_decimal(double number) {
  std::array<char, 32> text;
  std::snprintf(text.data(), text.size(), "%.1f", number);
  return text.data();
}

void check_keyword(const Layout& layout) {
  check_range("arity", layout.arity, 3, kArityMax);
  check_range("segment_length", layout.segment_length, kSegmentLengthMin, kSegmentLengthMax);
  check_range("digest_bytes", layout.record.digest_bytes, 1, kDigestBytesMax);
  check(std::has_single_bit(layout.segment_length), "segment_length must be a power of two");
  check(layout.row_count % layout.segment_length == 0,
        "row_count must be a multiple of segment_length");
  check(layout.row_count / layout.segment_length >= layout.arity,
        "row_count must hold at least arity segments");
}

void check_index(const Layout& layout) {
  check_range("arity of an index database", layout.arity, 1, 1);
  check_range("segment_length of an index database", layout.segment_length, 0, 0);
  check_range("digest_bytes of an index database", layout.record.digest_bytes, 0, 0);
  check((layout.key_count + layout.shard_count - 1) / layout.shard_count <= layout.row_count,
        "row_count times shard_count must be at least key_count in an index database");
}

// Names the sizes on which the failures of a layout depend, for an error.
std::string sizes_of_noise(const Layout& layout) {
  std::string text = std::to_string(layout.row_count) + " rows, query_bits " +
                     std::to_string(layout.query_bits) + ", response_bits " +
                     std::to_string(layout.response_bits) + ", hint_bits " +
                     std::to_string(layout.hint_bits);
  if (layout.second) {
    text += ", query2_bits " + std::to_string(layout.second->query_bits) + ", mask2_bits " +
            std::to_string(layout.second->mask_bits) + ", response2_bits " +
            std::to_string(layout.second->response_bits);
  }
  return text;
}

// The second level, whose first level has been checked.
void check_second(const Layout& layout) {
  const SecondLevel& second = *layout.second;
  check(layout.mode() == Mode::kPacked, "a second level is for packed responses");
  check_range("response_bits of two levels", layout.response_bits, 9, kSecondWordBitsMax);
  check_range("shards_a_group", second.group_shards, 1, layout.shard_count);
  check_range("query2_bits", second.query_bits, 16, 32);
  check_range("mask2_bits", second.mask_bits, 16, 32);
  check_range("response2_bits", second.response_bits, layout.response_bits + 1, 32);
  const uint64_t columns = uint64_t{second.group_shards} * layout.record_bytes();
  check(second.group_shards == 1 || columns <= kPackColumns,
        "shards_a_group times the bytes of a record must be at most 1024, or shards_a_group 1");
  const uint32_t order = second.key_order;
  check(order == 0 || (std::has_single_bit(order) && order >= 2 && order <= kPackColumns / 2),
        "short_key_order must be 0 or a power of two, 2 to 512");
  check(order == 0 || columns <= order,
        "short_key_order must be at least shards_a_group times the bytes of a record");
}

void check_batch(const Layout& layout) {
  const BatchCode& batch = *layout.batch;
  check(layout.mode() == Mode::kPacked && !layout.second,
        "requests of several keys are for packed responses of one level");
  check(layout.kind == DatabaseKind::kKeyword,
        "requests of several keys are for keyword databases");
  check_range("keys_per_request", batch.keys_per_request, kKeysPerRequestMin, kKeysPerRequestMax);
  check_range("bucket_count", batch.bucket_count, kBucketChoices, kBucketCountMax);
  // Fewer buckets make requests leave keys out often; more only cost bytes, and clients memory.
  check(2 * batch.bucket_count >= 3 * batch.keys_per_request &&
            batch.bucket_count <= kBucketsPerKeyMax * batch.keys_per_request,
        "bucket_count must be 1.5 to 8 times keys_per_request");
  check(layout.shard_count % batch.bucket_count == 0,
        "shard_count must be a multiple of bucket_count");
  check(layout.query_word_count() <= kQueryWordsMax,
        "row_count times bucket_count must be at most 2^26");
}

}  // namespace

uint32_t Layout::pack_count() const {
  if (mode() != Mode::kPacked) return 0;
  return static_cast<uint32_t>((column_count() + kPackColumns - 1) / kPackColumns);
}

uint64_t Layout::packing_table_bytes() const { return pack_count() * kTableBytes; }

uint64_t Layout::query_words_bytes() const {
  return bit_sequence_bytes(query_word_count(), query_bits);
}

uint64_t Layout::query_bytes() const {
  uint64_t bytes = query_words_bytes() + (mode() == Mode::kPacked ? ring::kKeyBytes : 0);
  if (second) bytes += second_level_spec(*this).query_bytes();
  return bytes;
}

uint64_t Layout::response_bytes() const {
  if (second) return second_level_spec(*this).response_bytes();
  return bit_sequence_bytes(column_count(), response_bits);
}

uint32_t Layout::second_row_count() const {
  return (shard_count + second->group_shards - 1) / second->group_shards;
}

uint32_t Layout::second_column_count() const { return second->group_shards * record_bytes(); }

uint32_t Layout::second_pack_count() const { return second_level_spec(*this).pack_count(); }

uint64_t Layout::second_query_bytes() const {
  return second_level_spec(*this).query_bytes() - second_level_spec(*this).key_bytes();
}

uint32_t Layout::second_key_switches() const { return second_level_spec(*this).key_switches(); }

SecondPlace Layout::second_place(uint32_t shard) const {
  const PublicDivisor group_shards(second->group_shards);
  return {static_cast<uint32_t>(group_shards.quotient(shard)),
          group_shards.remainder(shard) * record_bytes()};
}

uint32_t Layout::hint_part_count() const {
  return mode() == Mode::kPacked ? pack_count() : shard_count;
}

uint64_t Layout::hint_part_words() const {
  return mode() == Mode::kPacked ? ring::kDimension : uint64_t{record_bytes()} * lwe->dimension;
}

uint64_t Layout::hint_part_bytes() const {
  return bit_sequence_bytes(hint_part_words(), hint_bits);
}

HintParts Layout::hint_parts_of(uint32_t shard) const {
  if (mode() != Mode::kPacked) return {shard, shard};
  // Shards begin at multiples of this in their packs: as late as they may, they reach farthest.
  const uint64_t step = std::gcd<uint64_t, uint64_t>(record_bytes(), kPackColumns);
  const uint64_t most = (2 * kPackColumns - step + record_bytes() - 1) / kPackColumns;
  const auto count = static_cast<uint32_t>(std::min<uint64_t>(most, pack_count()));
  const auto own = static_cast<uint32_t>(uint64_t{shard} * record_bytes() / kPackColumns);
  const uint32_t first = std::min(own, pack_count() - count);
  return {first, first + count - 1};
}

NoiseBudget Layout::noise() const {
  return noise_budget(row_count, lwe->dimension, record_bytes(), query_bits, response_bits,
                      hint_bits, mode() == Mode::kPacked ? packing_variance() : 0.0,
                      lwe->error_max);
}

double Layout::log2_failure() const {
  const double first = noise().log2_failure;
  if (!second) return first;
  const SecondNoise noise =
      second_noise(second_row_count(), record_bytes(), response_bits, second->query_bits,
                   second->mask_bits, second->response_bits, second_key_switches());
  return log2_of_either(first, noise.log2_failure);
}

bool Layout::has_enough_error() const {
  return query_bits < 32 || query_word_count() <= kUnroundedRowsMax;
}

void check_layout(const Layout& layout) {
  invariant(layout.lwe != nullptr, "a layout has an LWE parameter set");
  check_range("key_count", layout.key_count, 1, kKeyCountMax);
  check_range("shard_count", layout.shard_count, 1, kShardCountMax);
  check_range("row_count", layout.row_count, kPanelRows, uint64_t{1} << 31);
  check_range("value_bytes", layout.record.value_bytes, 0, kValueBytesMax);
  check_range("query_bits", layout.query_bits, 24, 32);
  check_range("response_bits", layout.response_bits, 9, 32);
  check_range("hint_bits", layout.hint_bits, 16, 32);
  check(layout.row_count % kPanelRows == 0, "row_count must be a multiple of 64");
  if (layout.mode() == Mode::kPacked) {
    check(layout.row_count % ring::kDimension == 0 && layout.row_count <= kPackedRowsMax,
          "row_count must be a multiple of 2048, and at most 2^24, where responses are packed");
  }
  const uint32_t length_bytes = layout.record.length_bytes;
  check(length_bytes <= 2 || length_bytes == 4, "length_bytes must be 0, 1, 2 or 4");
  check(length_bytes == 4 || layout.record.value_bytes >> (8 * length_bytes) == 0 ||
            length_bytes == 0,
        "length_bytes is too small for value_bytes");
  if (layout.kind == DatabaseKind::kKeyword) {
    check_keyword(layout);
  } else {
    check_index(layout);
  }
  check(layout.record_bytes() >= 1, "records of an index database must have at least one byte");
  check(layout.has_enough_error(),
        "query_bits must be at most 31 where a query has words for more than 2^24 rows: errors of "
        "three values are not secure for so many samples");
  if (layout.second) check_second(layout);
  if (layout.batch) check_batch(layout);
  const double log2_failure = layout.log2_failure();
  if (log2_failure > kFailureLog2Max) {
    const bool first_fails = layout.noise().log2_failure > kFailureLog2Max;
    throw InputError("a look-up would fail with probability up to 2^" + one_decimal(log2_failure) +
                     "; at most 2^-40 is allowed (" + sizes_of_noise(layout) +
                     (first_fails ? "); use more bits or more shards"
                                  : "; most of it in the second level); use more of the second "
                                    "level's bits, or fewer response_bits"));
  }
}

}  // namespace blindfuse
