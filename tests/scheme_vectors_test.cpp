// The product's pieces against the whole databases of tests/vectors: what a server computes from
// the matrices there, byte for byte, and what a client reads in its answers.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <map>
#include <span>
#include <string>
#include <vector>

#include "host/hint/hint.h"
#include "host/publish/shard_stage.h"
#include "src/arithmetic/bit_sequence.h"
#include "src/protocol/manifest.h"
#include "src/protocol/sha256.h"
#include "tests/filled_engine.h"
#include "tests/support.h"
#include "tests/vectors.h"

namespace blindfuse {
namespace {

using vectors::from_hex;
using vectors::integer;
using vectors::json;
using vectors::read_vectors;
using vectors::to_hex;

std::string sha256_of_words(const std::vector<uint32_t>& words) {
  return to_hex(sha256({reinterpret_cast<const uint8_t*>(words.data()), words.size() * 4}));
}

class SchemeVectors : public testing::TestWithParam<const char*> {
 protected:
  SchemeVectors() : file_(read_vectors(GetParam())) {
    const auto parsed = parse_manifest(file_.at("manifest").dump());
    manifest_ = parsed.manifest;
    layout_ = parsed.manifest.layout;
    matrix_ = Matrix(layout_.row_count, layout_.column_count());
    uint64_t column = 0;
    for (const json& shard : file_.at("shards")) {
      for (const json& bytes : shard.at("matrix_columns")) {
        matrix_.set_columns(column++, from_hex(bytes));
      }
    }
  }

  Matrix shard_matrix(uint64_t shard) const {
    Matrix matrix(layout_.row_count, layout_.record_bytes());
    matrix.set_columns(0, matrix_.columns(shard * layout_.record_bytes(), layout_.record_bytes()));
    return matrix;
  }

  const json file_;
  Manifest manifest_;
  Layout layout_;
  Matrix matrix_;
};

INSTANTIATE_TEST_SUITE_P(Files, SchemeVectors,
                         testing::Values("database_keyword.json", "database_index.json"));

TEST_P(SchemeVectors, HintsAreThoseOfTheFile) {
  WorkerThreads threads(2);
  const PublicMatrix a(manifest_.seed, layout_.lwe->dimension);
  for (const std::string& engine : engine_names()) {
    for (uint64_t i = 0; i < layout_.shard_count; ++i) {
      const json& shard = file_.at("shards").at(i);
      std::vector<uint32_t> words(size_t{layout_.record_bytes()} * layout_.lwe->dimension);
      compute_hint(a, *support::filled_engine(engine, shard_matrix(i), 2), threads, words,
                   [](uint64_t) {});
      EXPECT_EQ(nlohmann::json(sha256_of_words(words)), shard.at("product_sha256")) << engine;
      std::vector<uint8_t> packed(layout_.hint_part_bytes());
      write_bit_sequence(words, layout_.hint_bits, packed);
      EXPECT_EQ(nlohmann::json(to_hex(sha256(packed))), shard.at("hint_sha256")) << engine;
    }
  }
}

TEST_P(SchemeVectors, ResponsesAreThoseOfTheFile) {
  for (const std::string& name : engine_names()) {
    const auto engine = support::filled_engine(name, matrix_, 2);
    for (const json& q : file_.at("queries")) {
      SCOPED_TRACE(name + ", " + q.at("name").get<std::string>());
      const std::vector<uint8_t> query = from_hex(q.at("query"));
      ASSERT_TRUE(is_bit_sequence(query, layout_.row_count, layout_.query_bits));
      std::vector<uint32_t> words(layout_.row_count);
      read_bit_sequence(query, layout_.query_bits, 0, words);
      std::vector<uint32_t> products(layout_.column_count());
      engine->multiply({words.data(), 1, words.size()}, {0, layout_.row_count},
                       {products.data(), 1, products.size()});
      EXPECT_EQ(json(products), q.at("response_words"));
      std::vector<uint8_t> response(layout_.response_bytes());
      write_bit_sequence(products, layout_.response_bits, response);
      EXPECT_EQ(nlohmann::json(to_hex(response)), q.at("response"));
    }
  }
}

TEST_P(SchemeVectors, RecordsAreReadAsTheFileSays) {
  for (const json& q : file_.at("queries")) {
    SCOPED_TRACE(q.at("name"));
    if (q.contains("index") && q.at("index") >= layout_.key_count) continue;
    const auto value =
        decode_record(layout_.record, from_hex(q.at("digest")), from_hex(q.at("record")));
    EXPECT_EQ(value ? json(to_hex(support::as_bytes(*value))) : json(nullptr), q.at("value"));
  }
}

// A keyword database has many right matrices; that of the file and the product's own must both give
// every key its record.
TEST(SchemeKeywordVectors, EveryKeyHasItsRecordInTheProductsMatrix) {
  const json file = read_vectors("database_keyword.json");
  const Manifest manifest = parse_manifest(file.at("manifest").dump()).manifest;
  const Layout& layout = manifest.layout;
  std::map<uint32_t, std::vector<SpoolEntry>> shards;
  std::vector<std::string> values;
  for (const json& entry : file.at("entries")) {
    values.push_back(vectors::string_from_hex(entry.at("value")));
  }
  for (size_t i = 0; i < values.size(); ++i) {
    const json& entry = file.at("entries").at(i);
    SpoolEntry spooled;
    spooled.hash = key_hash(manifest.salt, vectors::string_from_hex(entry.at("key")));
    spooled.place = i;
    spooled.value = values[i];
    const uint32_t shard = shard_of(spooled.hash.shard_hash, layout.shard_count);
    EXPECT_EQ(shard, entry.at("shard"));
    const uint64_t seed = integer(file.at("shards").at(shard).at("filter_seed"));
    auto rows = json::array();
    for (uint32_t j = 0; j < layout.arity; ++j) {
      rows.push_back(fuse_rows(layout.fuse(), seed, spooled.hash.slot_hash)[j]);
    }
    EXPECT_EQ(nlohmann::json(rows), entry.at("rows"));
    shards[shard].push_back(spooled);
  }
  for (const auto& [shard, entries] : shards) {
    std::vector<uint64_t> hashes;
    for (const SpoolEntry& entry : entries) hashes.push_back(entry.hash.slot_hash);
    const Filter filter =
        build_filter(layout.fuse(), hashes, [seed = uint64_t{0}]() mutable { return seed++; });
    std::vector<std::vector<uint8_t>> columns;
    make_keyword_matrix(layout, filter, entries, [&](std::span<const uint8_t> column) {
      columns.emplace_back(column.begin(), column.end());
    });
    ASSERT_EQ(columns.size(), layout.record_bytes());
    for (const SpoolEntry& entry : entries) {
      const auto rows = fuse_rows(layout.fuse(), filter.seed, entry.hash.slot_hash);
      std::vector<uint8_t> record;
      for (const auto& column : columns) {
        record.push_back(static_cast<uint8_t>(column[rows[0]] + column[rows[1]] + column[rows[2]]));
      }
      EXPECT_EQ(nlohmann::json(to_hex(record)), file.at("entries").at(entry.place).at("record"));
    }
  }
}

TEST(SchemeIndexVectors, MatricesAreThoseOfTheFile) {
  const json file = read_vectors("database_index.json");
  const Layout layout = parse_manifest(file.at("manifest").dump()).manifest.layout;
  std::vector<std::string> values;
  for (const json& value : file.at("values")) values.push_back(vectors::string_from_hex(value));
  std::vector<std::vector<SpoolEntry>> shards(layout.shard_count);
  for (size_t i = 0; i < values.size(); ++i) {
    const IndexPlace place = index_place(i, PublicDivisor(layout.shard_count));
    SpoolEntry entry;
    entry.hash.slot_hash = place.row;
    entry.value = values[i];
    shards[place.shard].push_back(entry);
  }
  for (size_t shard = 0; shard < shards.size(); ++shard) {
    auto columns = json::array();
    make_index_matrix(layout, shards[shard],
                      [&](std::span<const uint8_t> column) { columns.push_back(to_hex(column)); });
    EXPECT_EQ(columns, file.at("shards").at(shard).at("matrix_columns"));
  }
}

}  // namespace
}  // namespace blindfuse
