// The product's pieces put together (filter, matrix, hint, engine, packing) against the reference,
// which encrypts and decodes: whole databases of many shapes, and every kind of key in them.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "host/hint/hint.h"
#include "host/publish/shard_stage.h"
#include "src/arithmetic/bit_sequence.h"
#include "src/protocol/public_matrix.h"
#include "tests/filled_engine.h"
#include "tests/reference_pir.h"
#include "tests/support.h"

namespace blindfuse {
namespace {

using support::SeededRandom;

// Few enough dimensions for many shapes; the sets of the protocol have tests of their own below.
constexpr LweParams kSmallLwe = {"test", 40, Mode::kHint, 1, "nothing", 0, "tests"};

struct Shape {
  DatabaseKind kind = DatabaseKind::kKeyword;
  uint32_t arity = 3;
  const LweParams* lwe = &kSmallLwe;
  uint32_t shards = 1;
  uint64_t keys = 1;
  uint32_t digest_bytes = 8;
  uint32_t shortest = 0;
  uint32_t longest = 0;
  uint32_t query_bits = 32;
  uint32_t response_bits = 32;
  uint32_t hint_bits = 32;
};

// A database of random values under the keys "key-0", "key-1", ... (or 0, 1, ...), as a build makes
// it.
class Database {
 public:
  Database(const Shape& shape, SeededRandom& random) : random_(random) {
    for (uint8_t& byte : salt_) byte = random.byte();
    for (uint8_t& byte : seed_) byte = random.byte();
    layout_.kind = shape.kind;
    layout_.key_count = shape.keys;
    layout_.shard_count = shape.shards;
    layout_.lwe = shape.lwe;
    layout_.record = record_format_for(shape.digest_bytes, shape.shortest, shape.longest);
    layout_.query_bits = shape.query_bits;
    layout_.response_bits = shape.response_bits;
    layout_.hint_bits = shape.hint_bits;
    for (uint64_t i = 0; i < shape.keys; ++i) {
      values_.push_back(random.bytes(random.between(shape.shortest, shape.longest)));
    }
    shards_.resize(shape.shards);
    for (uint64_t i = 0; i < shape.keys; ++i) add(i);
    set_rows(shape.arity);
    check_layout(layout_);
    matrix_ = Matrix(layout_.row_count, layout_.column_count());
    filters_.resize(shape.shards);
    for (uint32_t shard = 0; shard < shape.shards; ++shard) fill(shard);
  }

  // Needs start_lookups.
  std::optional<std::string> look_up(uint64_t i) {
    const Place place = place_of(i);
    const std::vector<uint8_t> record = record_by_query(place);
    const auto value = decode_record(layout_.record, place.digest, record);
    const reference_pir::RecordFormat format{
        layout_.record.digest_bytes, layout_.record.length_bytes, layout_.record.value_bytes};
    const auto expected = reference_pir::decode_record(
        format, reference_pir::slice(place.digest, 0, format.digest_bytes), record);
    EXPECT_EQ(value.has_value(), expected.has_value());
    if (value && expected) {
      EXPECT_EQ(reference_pir::bytes_of(*value), *expected);
    }
    // The noise is gone: what a query reads is the sum of the rows.
    EXPECT_EQ(record, record_in_matrix(place));
    return value;
  }

  // The same without any noise: the sum of the key's rows.
  std::optional<std::string> read(uint64_t i) const {
    const Place place = place_of(i);
    return decode_record(layout_.record, place.digest, record_in_matrix(place));
  }

  // Makes the hints, by the product, and compares each with the reference's.
  void start_lookups() {
    a_ = reference_pir::public_matrix({seed_.begin(), seed_.end()}, layout_.lwe->dimension,
                                      layout_.row_count);
    engine_ = support::filled_engine("auto", matrix_, 2);
    WorkerThreads threads(2);
    std::vector<uint32_t> hints(layout_.column_count() * layout_.lwe->dimension);
    compute_hint(PublicMatrix(seed_, layout_.lwe->dimension), *engine_, threads, hints,
                 [](uint64_t) {});
    ASSERT_EQ(hints, reference_pir::hint(a_, reference_matrix()));
    const size_t words = size_t{layout_.record_bytes()} * layout_.lwe->dimension;
    for (uint32_t shard = 0; shard < layout_.shard_count; ++shard) {
      hints_.emplace_back(layout_.hint_part_bytes());
      write_bit_sequence(std::span(hints).subspan(shard * words, words), layout_.hint_bits,
                         hints_.back());
    }
  }

  // How many of the keys first .. first+count-1 of a keyword database are there, by the product
  // alone, for very many.
  uint64_t count_found(uint64_t first, uint64_t count) const {
    KeyHasher hasher(salt_);
    std::vector<uint8_t> record(layout_.record_bytes());
    uint64_t found = 0;
    for (uint64_t i = first; i < first + count; ++i) {
      const KeyHash hash = hasher(key_name(i));
      const uint32_t shard = shard_of(hash.shard_hash, layout_.shard_count);
      const auto rows = fuse_rows(layout_.fuse(), filters_[shard].seed, hash.slot_hash);
      sum_rows(shard, std::span(rows).first(layout_.arity), record);
      found += decode_record(layout_.record, hash.digest, record).has_value();
    }
    return found;
  }

  const std::string& value(uint64_t i) const { return values_[i]; }

  // The keys whose hashes lie next to the edges of the shards.
  std::vector<uint64_t> keys_at_edges() const {
    std::vector<uint64_t> keys;
    for (const std::vector<SpoolEntry>& shard : shards_) {
      if (shard.empty()) continue;
      const auto [first, last] = std::ranges::minmax_element(
          shard, {}, [](const SpoolEntry& entry) { return entry.hash.shard_hash; });
      keys.push_back(first->place);
      keys.push_back(last->place);
    }
    return keys;
  }

 private:
  struct Place {
    uint32_t shard = 0;
    std::vector<size_t> rows;
    std::vector<uint8_t> digest;
  };

  static std::string key_name(uint64_t i) { return "key-" + std::to_string(i); }

  void add(uint64_t i) {
    SpoolEntry entry;
    entry.place = i;
    entry.value = values_[i];
    uint32_t shard = 0;
    if (layout_.kind == DatabaseKind::kKeyword) {
      entry.hash = key_hash(salt_, key_name(i));
      shard = shard_of(entry.hash.shard_hash, layout_.shard_count);
    } else {
      const IndexPlace place = index_place(i, PublicDivisor(layout_.shard_count));
      entry.hash.shard_hash = i;
      entry.hash.slot_hash = place.row;
      shard = place.shard;
    }
    shards_[shard].push_back(entry);
  }

  void set_rows(uint32_t arity) {
    size_t fullest = 1;
    for (const auto& shard : shards_) fullest = std::max(fullest, shard.size());
    if (layout_.kind == DatabaseKind::kKeyword) {
      const FuseShape shape = fuse_shape(fullest, arity);
      layout_.arity = arity;
      layout_.segment_length = shape.segment_length;
      layout_.row_count = shape.row_count;
    } else {
      layout_.arity = 1;
      layout_.row_count = static_cast<uint32_t>((fullest + 63) / 64 * 64);
    }
  }

  void fill(uint32_t shard) {
    const std::vector<SpoolEntry>& entries = shards_[shard];
    uint64_t column = uint64_t{shard} * layout_.record_bytes();
    const ColumnSink sink = [&](std::span<const uint8_t> bytes) {
      matrix_.set_columns(column++, bytes);
    };
    if (layout_.kind == DatabaseKind::kKeyword) {
      std::vector<uint64_t> hashes;
      for (const SpoolEntry& entry : entries) hashes.push_back(entry.hash.slot_hash);
      filters_[shard] =
          build_filter(layout_.fuse(), hashes, [seed = uint64_t{0}]() mutable { return seed++; });
      make_keyword_matrix(layout_, filters_[shard], entries, sink);
    } else {
      make_index_matrix(layout_, entries, sink);
    }
    ASSERT_EQ(column, (shard + uint64_t{1}) * layout_.record_bytes());
  }

  // By the reference, so that the product's rows are compared too.
  Place place_of(uint64_t i) const {
    const uint64_t shards = layout_.shard_count;
    if (layout_.kind == DatabaseKind::kIndex) {
      Place place{static_cast<uint32_t>(i % shards), {}, {}};
      if (i < layout_.key_count) place.rows = {i / shards};
      return place;
    }
    const auto hash =
        reference_pir::key_hash({salt_.begin(), salt_.end()}, reference_pir::bytes_of(key_name(i)));
    const auto shard = static_cast<uint32_t>(hash.shard(shards));
    const reference_pir::FuseShape fuse{layout_.row_count, layout_.segment_length, layout_.arity};
    return {shard, reference_pir::rows_of_key(hash.x1, filters_[shard].seed, fuse),
            hash.digest(16)};
  }

  template <typename Rows>
  void sum_rows(uint32_t shard, const Rows& rows, std::span<uint8_t> record) const {
    for (uint32_t c = 0; c < layout_.record_bytes(); ++c) {
      const uint64_t column = uint64_t{shard} * layout_.record_bytes() + c;
      int sum = 0;
      for (const auto row : rows) sum += matrix_.at(row, column);
      record[c] = static_cast<uint8_t>(sum & 255);
    }
  }

  std::vector<uint8_t> record_in_matrix(const Place& place) const {
    std::vector<uint8_t> record(layout_.record_bytes());
    sum_rows(place.shard, place.rows, record);
    return record;
  }

  reference_pir::Matrix reference_matrix() const {
    reference_pir::Matrix matrix(layout_.row_count, layout_.column_count());
    const std::vector<uint8_t> bytes = matrix_.columns(0, layout_.column_count());
    matrix.bytes.assign(bytes.begin(), bytes.end());
    return matrix;
  }

  // Sections 9 to 11 of the protocol: secrets, query, decoding by the reference; the server's part
  // by the product.
  std::vector<uint8_t> record_by_query(const Place& place) {
    const auto s = random_.ternaries(layout_.lwe->dimension);
    const auto e = random_.ternaries(layout_.row_count);
    const auto words =
        reference_pir::encrypt(a_, s, e, reference_pir::selection(place.rows, layout_.row_count));
    const auto query = reference_pir::round_and_pack(words, layout_.query_bits);
    EXPECT_EQ(query.size(), layout_.query_bytes());
    const std::vector<uint8_t> response = respond(query);
    const uint32_t n = layout_.lwe->dimension;
    const uint32_t width = layout_.record_bytes();
    const auto hint = reference_pir::unpack_and_restore(hints_[place.shard], layout_.hint_bits,
                                                        size_t{width} * n);
    const auto products =
        reference_pir::unpack_and_restore(response, layout_.response_bits, layout_.column_count());
    if (!hint || !products) {
      ADD_FAILURE() << "the product packs what the reference refuses";
      return std::vector<uint8_t>(width);
    }
    return reference_pir::decode(
        reference_pir::phases(*products, size_t{place.shard} * width, width, *hint, s));
  }

  std::vector<uint8_t> respond(const std::vector<uint8_t>& query) {
    EXPECT_TRUE(is_bit_sequence(query, layout_.row_count, layout_.query_bits));
    std::vector<uint32_t> words(layout_.row_count);
    read_bit_sequence(query, layout_.query_bits, 0, words);
    std::vector<uint32_t> products(layout_.column_count());
    engine_->multiply({words.data(), 1, words.size()}, {0, layout_.row_count},
                      {products.data(), 1, products.size()});
    EXPECT_EQ(products, reference_pir::respond(query, layout_.query_bits, reference_matrix()));
    std::vector<uint8_t> response(layout_.response_bytes());
    write_bit_sequence(products, layout_.response_bits, response);
    return response;
  }

  SeededRandom& random_;
  Layout layout_;
  Salt salt_{};
  MatrixSeed seed_{};
  std::vector<std::string> values_;
  std::vector<std::vector<SpoolEntry>> shards_;
  std::vector<Filter> filters_;
  Matrix matrix_;
  std::unique_ptr<Engine> engine_;
  reference_pir::PublicMatrix a_;
  std::vector<std::vector<uint8_t>> hints_;
};

// Every key by its rows; the keys at the shards' edges, some others and some absent ones by
// queries.
void expect_right(const Shape& shape, SeededRandom& random) {
  SCOPED_TRACE(std::to_string(shape.keys) + " keys, arity " + std::to_string(shape.arity) + ", " +
               std::to_string(shape.shards) + " shards, " +
               (shape.kind == DatabaseKind::kIndex ? "index" : "keyword"));
  Database database(shape, random);
  for (uint64_t i = 0; i < shape.keys; ++i) ASSERT_EQ(database.read(i), database.value(i)) << i;
  ASSERT_NO_FATAL_FAILURE(database.start_lookups());
  std::vector<uint64_t> present = database.keys_at_edges();
  present.insert(present.end(), {0, shape.keys - 1, random.below(shape.keys)});
  for (const uint64_t i : present) ASSERT_EQ(database.look_up(i), database.value(i)) << i;
  for (uint64_t i = shape.keys; i < shape.keys + 3; ++i) {
    const auto value = database.look_up(i);
    // An index beyond the end reads an empty record, which a client does not even look at.
    if (shape.kind == DatabaseKind::kKeyword) {
      ASSERT_EQ(value, std::nullopt) << i;
    }
  }
}

constexpr auto kIndex = DatabaseKind::kIndex;
constexpr auto kKeyword = DatabaseKind::kKeyword;

TEST(Scheme, LooksUpWithEveryParameterSet) {
  SeededRandom random(500);
  for (const LweParams& lwe : lwe_params()) {
    if (lwe.mode != Mode::kHint) continue;  // tests/packing, tests/client have the others
    SCOPED_TRACE(lwe.name);
    expect_right({kKeyword, 3, &lwe, 2, 300, 8, 16, 16, 28, 10, 18}, random);
    expect_right({kKeyword, 4, &lwe, 3, 400, 4, 0, 11, 27, 10, 19}, random);
    expect_right({kIndex, 1, &lwe, 3, 400, 0, 3, 12, 27, 9, 17}, random);
  }
}

TEST(Scheme, LooksUpInUnusualShapes) {
  SeededRandom random(501);
  expect_right({kKeyword, 3, &kSmallLwe, 1, 1, 16, 0, 0}, random);        // one key, no value
  expect_right({kKeyword, 4, &kSmallLwe, 40, 3, 8, 5, 5}, random);        // mostly empty shards
  expect_right({kKeyword, 3, &kSmallLwe, 2, 50, 8, 0, 1000}, random);     // records of many blocks
  expect_right({kKeyword, 3, &kSmallLwe, 1, 3000, 12, 51, 52}, random);   // exactly one block
  expect_right({kKeyword, 4, &kSmallLwe, 17, 2000, 16, 48, 48}, random);  // the same, no length
  expect_right({kIndex, 1, &kSmallLwe, 7, 3, 0, 1, 1}, random);           // fewer keys than shards
  expect_right({kIndex, 1, &kSmallLwe, 1, 64, 0, 0, 300}, random);        // every row taken
  expect_right({kIndex, 1, &kSmallLwe, 3, 3 * 128, 0, 64, 64}, random);
}

TEST(Scheme, LooksUpInSampledShapes) {
  SeededRandom random(502);
  for (int i = 0; i < 40; ++i) {
    Shape shape;
    shape.kind = random.below(4) == 0 ? kIndex : kKeyword;
    shape.arity = shape.kind == kIndex ? 1 : static_cast<uint32_t>(random.between(3, 4));
    shape.shards = static_cast<uint32_t>(random.between(1, 9));
    shape.keys = random.between(1, 600);
    shape.digest_bytes = shape.kind == kIndex ? 0 : static_cast<uint32_t>(random.between(6, 16));
    shape.longest = static_cast<uint32_t>(random.between(1, 80));
    shape.shortest = static_cast<uint32_t>(random.between(0, shape.longest));
    shape.query_bits = static_cast<uint32_t>(random.between(25, 32));
    shape.response_bits = static_cast<uint32_t>(random.between(9, 32));
    shape.hint_bits = static_cast<uint32_t>(random.between(16, 32));
    expect_right(shape, random);
  }
}

// A million keys that are not there, read without noise, by the sum of their rows.
uint64_t found_among_absent(uint32_t arity, uint32_t digest_bytes, SeededRandom& random) {
  constexpr uint64_t kKeys = 20'000;
  const Database database({kKeyword, arity, &kSmallLwe, 4, kKeys, digest_bytes, 4, 4}, random);
  EXPECT_EQ(database.count_found(0, kKeys), kKeys);
  return database.count_found(kKeys, 1'000'000);
}

TEST(Scheme, NeverFindsAbsentKeysByDigestsOfEightBytes) {
  SeededRandom random(503);
  EXPECT_EQ(found_among_absent(3, 8, random), 0u);
}

// A digest of one byte is right by chance once in 256 times: 3906 of a million, give or take 62.
TEST(Scheme, FindsAbsentKeysAtTheRateOfShortDigests) {
  SeededRandom random(504);
  constexpr double kTries = 1e6;
  constexpr double kRate = 1.0 / 256;
  const double sigma = std::sqrt(kTries * kRate * (1 - kRate));
  const auto found = static_cast<double>(found_among_absent(4, 1, random));
  std::printf("%.0f absent keys found of a million\n", found);
  EXPECT_NEAR(found, kTries * kRate, 5 * sigma);
}

}  // namespace
}  // namespace blindfuse
