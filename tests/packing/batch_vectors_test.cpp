// What a server computes where requests are for several keys, against tests/vectors/batch.json,
// which another program made from docs/PROTOCOL.md, section 21.
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <span>
#include <string>
#include <vector>

#include "host/cpu/packing/hint_polynomials.h"
#include "host/cpu/packing/packing_keys.h"
#include "host/cpu/packing/packing_table_builder.h"
#include "host/cpu/packing/response_packer.h"
#include "src/arithmetic/bit_sequence.h"
#include "src/arithmetic/ring/modulus_switch.h"
#include "src/protocol/manifest.h"
#include "src/protocol/public_polynomials.h"
#include "src/protocol/sha256.h"
#include "tests/packing/expect_words.h"
#include "tests/vectors.h"

namespace blindfuse {
namespace {

using ring::kDimension;
using vectors::json;

class BatchServerVectors : public ::testing::Test {
 protected:
  // Column by column, row_count bytes each, of all shards.
  std::vector<int8_t> matrix() const {
    const size_t rows = layout_.row_count;
    const size_t record_bytes = layout_.record_bytes();
    std::vector<int8_t> bytes(rows * layout_.column_count());
    size_t first = 0;  // column of the shard
    for (const json& shard : file_.at("shards")) {
      for (const auto& [row, record] : shard.at("matrix_rows").items()) {
        const std::vector<uint8_t> read = vectors::from_hex(record);
        for (size_t c = 0; c < record_bytes; ++c) {
          bytes[(first + c) * rows + std::stoul(row)] = static_cast<int8_t>(read.at(c));
        }
      }
      first += record_bytes;
    }
    return bytes;
  }

  const json file_ = vectors::read_vectors("batch.json");
  const Manifest manifest_ = parse_manifest(file_.at("manifest").dump()).manifest;
  const Layout& layout_ = manifest_.layout;
  const ring::PublicPolynomials polynomials_{manifest_.seed};
};

TEST_F(BatchServerVectors, PublicPolynomialsAreThoseOfTheirBuckets) {
  std::array<uint32_t, kDimension> found;
  for (const json& each : file_.at("public")) {
    SCOPED_TRACE(each.at("bucket"));
    polynomials_.fill_block(each.at("bucket"), each.at("j"), found);
    expect_words(found, each);
  }
  EXPECT_EQ(polynomials_.blocks(kDimension), polynomials_.blocks(kDimension, 0));
  EXPECT_NE(polynomials_.blocks(kDimension), polynomials_.blocks(kDimension, 1));
}

TEST_F(BatchServerVectors, MatricesAreThoseOfTheTable) {
  const std::vector<int8_t> bytes = matrix();
  const size_t shard_bytes = layout_.shard_matrix_bytes();
  for (size_t shard = 0; shard < layout_.shard_count; ++shard) {
    const auto* begin = reinterpret_cast<const uint8_t*>(bytes.data()) + shard * shard_bytes;
    EXPECT_EQ(vectors::to_hex(sha256({begin, shard_bytes})),
              file_.at("shards").at(shard).at("matrix_sha256").get<std::string>());
  }
}

// One pack, which has the columns of all buckets.
TEST_F(BatchServerVectors, MaskAndResponseAreTheFrozenOnes) {
  const size_t rows = layout_.row_count;
  const size_t column_count = layout_.column_count();
  ASSERT_EQ(layout_.pack_count(), 1u);
  const std::vector<int8_t> bytes = matrix();
  std::vector<uint32_t> hints(kPackColumns * kDimension);
  for (uint32_t bucket = 0; bucket < layout_.bucket_count(); ++bucket) {
    const HintPolynomials hint(polynomials_.blocks(layout_.row_count, bucket));
    const size_t first = bucket * layout_.bucket_column_count();
    for (size_t c = first; c < first + layout_.bucket_column_count(); ++c) {
      hint.compute({bytes.data() + c * rows, rows},
                   ring::MutablePolynomial(hints.data() + c * kDimension, kDimension));
    }
  }
  expect_words(std::span(hints).first(column_count * kDimension), file_.at("hints"));

  std::vector<uint32_t> table(kTableWords);
  std::array<uint32_t, kDimension> mask;
  PackingTableBuilder(polynomials_.key_masks()).build(hints, MutablePackingTable(table), mask);
  expect_words(mask, file_.at("mask"));

  const std::vector<uint8_t> query = vectors::from_hex(file_.at("query"));
  ASSERT_EQ(query.size(), layout_.query_bytes());
  const PackingKeys keys = PackingKeys::read(std::span(query).subspan(layout_.query_words_bytes()));
  const auto responses = file_.at("responses").get<std::vector<uint32_t>>();
  std::array<uint32_t, kDimension> body;
  const ResponsePacker::Task task{keys.words(), responses, body};
  ResponsePacker().pack(PackingTable(table), {&task, 1});
  expect_words(std::span(body).first(column_count), file_.at("body"));

  std::vector<uint32_t> lowered(body.begin(), body.begin() + static_cast<long>(column_count));
  for (uint32_t& word : lowered) {
    word = restore_word(ring::switch_from_q(word, layout_.response_bits), layout_.response_bits);
  }
  std::vector<uint8_t> sent(layout_.response_bytes());
  write_bit_sequence(lowered, layout_.response_bits, sent);
  EXPECT_EQ(vectors::to_hex(sent), file_.at("response").get<std::string>());
}

// Each column by the words of its own bucket.
TEST_F(BatchServerVectors, ProductsAreTheFrozenOnes) {
  const size_t rows = layout_.row_count;
  const std::vector<int8_t> bytes = matrix();
  const std::vector<uint8_t> query = vectors::from_hex(file_.at("query"));
  std::vector<uint32_t> words(layout_.query_word_count());
  read_bit_sequence(std::span(query).first(layout_.query_words_bytes()), layout_.query_bits, 0,
                    words);
  const auto expected = file_.at("responses").get<std::vector<uint32_t>>();
  ASSERT_EQ(expected.size(), layout_.column_count());
  for (size_t c = 0; c < expected.size(); ++c) {
    const size_t bucket = c / layout_.bucket_column_count();
    uint32_t sum = 0;
    for (size_t row = 0; row < rows; ++row) {
      sum += words[bucket * rows + row] * static_cast<uint32_t>(int32_t{bytes[c * rows + row]});
    }
    ASSERT_EQ(sum, expected[c]) << c;
  }
}

}  // namespace
}  // namespace blindfuse
