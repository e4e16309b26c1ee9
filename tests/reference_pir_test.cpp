// Checks reference_pir.h against tests/vectors/*.json, which tests/vectors/generate.py writes: two
// implementations of docs/PROTOCOL.md that share nothing check each other.

#include "tests/reference_pir.h"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <string>

#include "tests/vectors.h"

namespace reference_pir {
namespace {

using nlohmann::json;
using vectors::from_hex;
using vectors::integer;
using vectors::read_vectors;
using vectors::ternary;
using vectors::to_hex;

std::string sha256_hex(const Bytes& bytes) { return to_hex(sha256(bytes)); }

Words first_words(const Words& words, std::size_t count) {
  return Words(words.begin(), words.begin() + static_cast<std::ptrdiff_t>(count));
}

Words last_words(const Words& words, std::size_t count) {
  return Words(words.end() - static_cast<std::ptrdiff_t>(count), words.end());
}

FuseShape shape_of(const json& object) {
  return {object.at("row_count"), object.at("segment_length"), object.at("arity")};
}

RecordFormat format_of(const json& object) {
  return {object.at("digest_bytes"), object.at("length_bytes"), object.at("value_bytes")};
}

std::string epoch_of(json manifest) {
  manifest.erase("epoch");
  // nlohmann sorts members by name and writes no white space: for a manifest that is RFC 8785.
  return sha256_hex(bytes_of("blindfuse/epoch/1" + manifest.dump()));
}

TEST(ReferenceVectors, KeyHash) {
  const json vectors = read_vectors("key_hash.json");
  for (const json& c : vectors.at("cases")) {
    SCOPED_TRACE(c.at("name"));
    Bytes key;
    if (c.at("key").contains("repeat")) {
      for (int i = 0; i < c.at("key").at("times").get<int>(); ++i) {
        key = std::move(key) + from_hex(c.at("key").at("repeat"));
      }
    } else {
      key = from_hex(c.at("key").at("bytes"));
    }
    const KeyHash hash = key_hash(from_hex(c.at("salt")), key);
    EXPECT_EQ(json(to_hex(hash.h)), c.at("h"));
    EXPECT_EQ(hash.x0, integer(c.at("x0")));
    EXPECT_EQ(hash.x1, integer(c.at("x1")));
    for (const auto& [bytes, digest] : c.at("digest").items()) {
      EXPECT_EQ(nlohmann::json(to_hex(hash.digest(std::stoul(bytes)))), digest);
    }
    for (const auto& [count, shard] : c.at("shard").items()) {
      EXPECT_EQ(hash.shard(std::stoul(count)), shard);
    }
  }
}

TEST(ReferenceVectors, FuseSlots) {
  const json vectors = read_vectors("fuse_slots.json");
  for (const json& c : vectors.at("mix64")) {
    EXPECT_EQ(mix64(integer(c.at("in"))), integer(c.at("out")));
  }
  for (const json& c : vectors.at("rows")) {
    EXPECT_EQ(json(rows_of_key(integer(c.at("x1")), integer(c.at("seed")), shape_of(c))),
              c.at("rows"))
        << c;
  }
  for (const json& c : vectors.at("shapes")) {
    const FuseShape shape = fuse_shape(c.at("key_count"), c.at("arity"));
    EXPECT_EQ(shape.segment_length, c.at("segment_length")) << c;
    EXPECT_EQ(shape.row_count, c.at("row_count")) << c;
  }
}

TEST(ReferenceVectors, Record) {
  const json vectors = read_vectors("record.json");
  for (const json& f : vectors.at("formats")) {
    const RecordFormat format = format_of(f);
    const Bytes digest = from_hex(f.at("digest"));
    EXPECT_EQ(format.record_bytes(), f.at("record_bytes"));
    for (const json& good : f.at("good")) {
      const Bytes value = from_hex(good.at("value"));
      EXPECT_EQ(nlohmann::json(to_hex(encode_record(format, digest, value))), good.at("record"));
      EXPECT_EQ(decode_record(format, digest, from_hex(good.at("record"))), value);
    }
    for (const json& bad : f.at("bad")) {
      EXPECT_EQ(decode_record(format, digest, from_hex(bad.at("record"))), std::nullopt) << bad;
    }
  }
}

TEST(ReferenceVectors, PublicMatrix) {
  const json vectors = read_vectors("public_matrix.json");
  const Bytes seed = from_hex(vectors.at("seed"));
  for (const json& c : vectors.at("panels")) {
    const Words words = public_matrix_panel(seed, c.at("panel"), c.at("dimension"));
    EXPECT_EQ(json(first_words(words, 16)), c.at("first_words"));
    EXPECT_EQ(json(last_words(words, 16)), c.at("last_words"));
    EXPECT_EQ(json(sha256_hex(bytes_of_words(words))), c.at("sha256"));
  }
}

TEST(ReferenceVectors, BitSequence) {
  const json vectors = read_vectors("bit_packing.json");
  for (const json& c : vectors.at("cases")) {
    const unsigned bits = c.at("bits");
    SCOPED_TRACE(bits);
    const Words words = c.at("words");
    Words numbers;
    for (const std::uint32_t word : words) numbers.push_back(round_word(word, bits));
    EXPECT_EQ(nlohmann::json(numbers), c.at("numbers"));
    EXPECT_EQ(nlohmann::json(to_hex(round_and_pack(words, bits))), c.at("packed"));
    const Bytes packed = from_hex(c.at("packed"));
    EXPECT_EQ(unpack(packed, bits, words.size()), numbers);
    EXPECT_EQ(unpack_and_restore(packed, bits, words.size()), c.at("restored").get<Words>());
  }
  for (const json& bad : vectors.at("bad")) {
    EXPECT_EQ(unpack(from_hex(bad.at("packed")), bad.at("bits"), bad.at("count")), std::nullopt)
        << bad;
  }
}

TEST(ReferenceVectors, Manifest) {
  const json vectors = read_vectors("manifest.json");
  for (const json& c : vectors.at("valid")) {
    EXPECT_EQ(json::parse(c.at("text").get<std::string>()), c.at("manifest"));
    EXPECT_EQ(json(epoch_of(c.at("manifest"))), c.at("manifest").at("epoch"));
  }
  // An invalid manifest must be refused for the stated reason, not for its epoch id.
  for (const char* list : {"invalid", "invalid_cross_field"}) {
    for (const json& c : vectors.at(list)) {
      const json manifest = json::parse(c.at("text").get<std::string>(), nullptr, false);
      if (!manifest.is_object() || !c.at("change").get<std::string>().ends_with(", new epoch")) {
        continue;
      }
      EXPECT_EQ(json(epoch_of(manifest)), manifest.at("epoch")) << c.at("change");
    }
  }
}

TEST(ReferenceVectors, ShardTable) {
  const json vectors = read_vectors("shard_table.json");
  std::vector<ShardEntry> entries;
  for (const json& c : vectors.at("entries")) {
    entries.push_back({integer(c.at("seed")), c.at("key_count"), from_hex(c.at("input")),
                       from_hex(c.at("matrix")), from_hex(c.at("hint"))});
  }
  EXPECT_EQ(nlohmann::json(to_hex(shard_table(entries))), vectors.at("table"));
  EXPECT_EQ(nlohmann::json(sha256_hex(shard_table(entries))), vectors.at("sha256"));
}

// A database file: its matrices as given, and what follows from them.
class ReferenceDatabase : public ::testing::TestWithParam<const char*> {
 protected:
  ReferenceDatabase() : file_(read_vectors(GetParam())) {
    for (const json& shard : file_.at("shards")) {
      Matrix matrix(manifest_.at("row_count"), 0);
      for (const json& column : shard.at("matrix_columns")) {
        matrix.bytes = std::move(matrix.bytes) + from_hex(column);
        ++matrix.column_count;
      }
      shards_.push_back(matrix);
    }
  }

  const json file_;
  const json& manifest_ = file_.at("manifest");
  const json& derived_ = file_.at("derived");
  const RecordFormat format_ = format_of(manifest_);
  const PublicMatrix a_ = public_matrix(from_hex(manifest_.at("seed")), derived_.at("dimension"),
                                        manifest_.at("row_count"));
  std::vector<Matrix> shards_;
};

INSTANTIATE_TEST_SUITE_P(Files, ReferenceDatabase,
                         ::testing::Values("database_keyword.json", "database_index.json"));

TEST_P(ReferenceDatabase, HintsAndTable) {
  std::vector<ShardEntry> entries;
  for (std::size_t i = 0; i < shards_.size(); ++i) {
    const json& shard = file_.at("shards").at(i);
    ASSERT_EQ(shards_[i].column_count, format_.record_bytes());
    const Words product = hint(a_, shards_[i]);
    EXPECT_EQ(nlohmann::json(first_words(product, 16)), shard.at("product_first_words"));
    EXPECT_EQ(nlohmann::json(last_words(product, 16)), shard.at("product_last_words"));
    EXPECT_EQ(nlohmann::json(sha256_hex(bytes_of_words(product))), shard.at("product_sha256"));
    const Bytes packed = round_and_pack(product, manifest_.at("hint_bits"));
    EXPECT_EQ(packed.size(), derived_.at("hint_bytes"));
    EXPECT_EQ(nlohmann::json(to_hex(slice(packed, 0, 64))), shard.at("hint_prefix"));
    EXPECT_EQ(nlohmann::json(to_hex(slice(packed, packed.size() - 64, 64))),
              shard.at("hint_suffix"));
    EXPECT_EQ(nlohmann::json(sha256_hex(packed)), shard.at("hint_sha256"));
    EXPECT_EQ(nlohmann::json(sha256_hex(shards_[i].bytes)), shard.at("matrix_sha256"));
    entries.push_back({integer(shard.at("filter_seed")), shard.at("key_count"),
                       from_hex(shard.at("input_sha256")), sha256(shards_[i].bytes),
                       sha256(packed)});
  }
  EXPECT_EQ(nlohmann::json(to_hex(shard_table(entries))), file_.at("table"));
  EXPECT_EQ(nlohmann::json(sha256_hex(shard_table(entries))), manifest_.at("table"));
  EXPECT_EQ(json(epoch_of(manifest_)), manifest_.at("epoch"));
}

TEST_P(ReferenceDatabase, Queries) {
  const unsigned response_bits = manifest_.at("response_bits");
  const Matrix all = side_by_side(shards_);
  for (const json& q : file_.at("queries")) {
    SCOPED_TRACE(q.at("name"));
    const Ternary s = ternary(q.at("s"));
    const Words b =
        encrypt(a_, s, ternary(q.at("e")), selection(q.at("rows"), manifest_.at("row_count")));
    EXPECT_EQ(nlohmann::json(first_words(b, 16)), q.at("query_words_first"));
    EXPECT_EQ(nlohmann::json(sha256_hex(bytes_of_words(b))), q.at("query_words_sha256"));
    const Bytes query = round_and_pack(b, manifest_.at("query_bits"));
    EXPECT_EQ(nlohmann::json(to_hex(query)), q.at("query"));
    EXPECT_EQ(nlohmann::json(sha256_hex(query)), q.at("query_sha256"));
    EXPECT_EQ(query.size(), derived_.at("query_bytes"));

    const auto products = respond(query, manifest_.at("query_bits"), all);
    ASSERT_TRUE(products);
    EXPECT_EQ(*products, q.at("response_words").get<Words>());
    const Bytes response = round_and_pack(*products, response_bits);
    EXPECT_EQ(nlohmann::json(to_hex(response)), q.at("response"));
    EXPECT_EQ(response.size(), derived_.at("response_bytes"));

    const std::size_t shard = q.at("shard");
    const std::size_t width = format_.record_bytes();
    const unsigned hint_bits = manifest_.at("hint_bits");
    const auto hint_words = unpack_and_restore(round_and_pack(hint(a_, shards_[shard]), hint_bits),
                                               hint_bits, width * s.size());
    const auto words = unpack_and_restore(response, response_bits, all.column_count);
    ASSERT_TRUE(hint_words && words);
    const Words phases_of_shard = phases(*words, shard * width, width, *hint_words, s);
    EXPECT_EQ(phases_of_shard, q.at("phases").get<Words>());
    const Bytes record = decode(phases_of_shard);
    EXPECT_EQ(nlohmann::json(to_hex(record)), q.at("record"));
    EXPECT_EQ(record, sum_of_rows(shards_[shard], q.at("rows")));
    if (q.contains("index") && q.at("index") >= manifest_.at("key_count")) continue;
    const auto value = decode_record(format_, from_hex(q.at("digest")), record);
    EXPECT_EQ(value ? json(to_hex(*value)) : json(nullptr), q.at("value"));
  }
}

TEST(ReferenceKeywordDatabase, EveryKeyHasItsRecord) {
  const json file = read_vectors("database_keyword.json");
  const json& manifest = file.at("manifest");
  const RecordFormat format = format_of(manifest);
  std::vector<std::vector<FilterEntry>> members(file.at("shards").size());
  for (const json& entry : file.at("entries")) {
    const KeyHash hash = key_hash(from_hex(manifest.at("salt")), from_hex(entry.at("key")));
    const std::size_t shard = hash.shard(members.size());
    EXPECT_EQ(shard, entry.at("shard"));
    const auto rows = rows_of_key(hash.x1, integer(file.at("shards").at(shard).at("filter_seed")),
                                  shape_of(manifest));
    EXPECT_EQ(nlohmann::json(rows), entry.at("rows"));
    const Bytes record =
        encode_record(format, hash.digest(format.digest_bytes), from_hex(entry.at("value")));
    EXPECT_EQ(nlohmann::json(to_hex(record)), entry.at("record"));
    members[shard].push_back({rows, record});
  }
  for (std::size_t shard = 0; shard < members.size(); ++shard) {
    EXPECT_EQ(members[shard].size(), file.at("shards").at(shard).at("key_count"));
    // The matrix of the file, and one that this file's own builder makes of the same keys.
    Matrix given(manifest.at("row_count"), format.record_bytes());
    for (std::size_t column = 0; column < given.column_count; ++column) {
      const Bytes bytes = from_hex(file.at("shards").at(shard).at("matrix_columns").at(column));
      for (std::size_t row = 0; row < bytes.size(); ++row) given.at(row, column) = bytes[row];
    }
    const auto built = build_filter(members[shard], given.row_count, given.column_count);
    ASSERT_TRUE(built);
    for (const FilterEntry& entry : members[shard]) {
      EXPECT_EQ(sum_of_rows(given, entry.rows), entry.record);
      EXPECT_EQ(sum_of_rows(*built, entry.rows), entry.record);
    }
  }
}

TEST(ReferenceIndexDatabase, EveryIndexHasItsRecord) {
  const json file = read_vectors("database_index.json");
  const RecordFormat format = format_of(file.at("manifest"));
  const std::size_t shard_count = file.at("shards").size();
  for (std::size_t i = 0; i < file.at("values").size(); ++i) {
    const json& columns = file.at("shards").at(i % shard_count).at("matrix_columns");
    Bytes record;
    for (const json& column : columns) record.push_back(from_hex(column).at(i / shard_count));
    EXPECT_EQ(record, encode_record(format, {}, from_hex(file.at("values").at(i)))) << i;
  }
}

// Both arities at a size where the factors of fuse_shape are tight enough to matter.
TEST(ReferenceFilter, PeelsAtTheShapeOfThePlanner) {
  for (const unsigned arity : {3u, 4u}) {
    const FuseShape shape = fuse_shape(3000, arity);
    std::vector<KeyHash> hashes;
    for (std::uint64_t i = 0; i < 3000; ++i) {
      hashes.push_back(key_hash(Bytes(16, 7), little_endian(i, 8)));
    }
    bool built = false;
    for (std::uint64_t seed = 0; seed < 20 && !built; ++seed) {
      std::vector<FilterEntry> entries;
      for (const KeyHash& hash : hashes) {
        entries.push_back({rows_of_key(hash.x1, seed, shape), hash.digest(4)});
      }
      const auto matrix = build_filter(entries, shape.row_count, 4);
      if (!matrix) continue;
      built = true;
      for (const FilterEntry& entry : entries) {
        ASSERT_EQ(sum_of_rows(*matrix, entry.rows), entry.record);
      }
    }
    EXPECT_TRUE(built) << "arity " << arity;
  }
}

TEST(ReferenceFilter, RefusesEqualRows) {
  const std::vector<FilterEntry> twins(2, {{0, 64, 128}, {1}});
  EXPECT_EQ(build_filter(twins, 192, 1).has_value(), false);
}

}  // namespace
}  // namespace reference_pir
