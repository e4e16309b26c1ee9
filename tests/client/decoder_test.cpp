#include "client/decoder.h"

#include <blindfuse/errors.h>
#include <gtest/gtest.h>

#include <stdexcept>

#include "client/database_description.h"
#include "tests/client/fake_server.h"

namespace blindfuse {
namespace {

SecretBuffer<uint32_t> secret_of(const std::string& signs) {
  SecretBuffer<uint32_t> secret(signs.size());
  for (size_t k = 0; k < signs.size(); ++k) {
    secret[k] = signs[k] == '+' ? 1u : signs[k] == '-' ? 0xffffffffu : 0u;
  }
  return secret;
}

class DecoderVectors : public testing::TestWithParam<const char*> {};

// Independent of our encoder: queries, responses, records and values as another program made them.
TEST_P(DecoderVectors, QueriesAndRecordsAreTheFrozenOnes) {
  const nlohmann::json vectors = read_vectors(GetParam());
  const ServedDatabase& served = ServedDatabase::from_vectors(GetParam());
  const DatabaseDescription database(vectors["manifest"].dump(), bytes_of_hex(vectors["table"]));
  const Layout& layout = database.layout();
  const reference_pir::PublicMatrix a = reference_pir::public_matrix(
      bytes_of_hex(vectors["manifest"]["seed"]), layout.lwe->dimension, layout.row_count);
  for (const nlohmann::json& query : vectors["queries"]) {
    SCOPED_TRACE(query["name"]);
    const std::string s = query["s"], e = query["e"];
    SecretBuffer<uint32_t> masked = secret_of(e);
    const SecretBuffer<uint32_t> secret = secret_of(s);
    for (size_t r = 0; r < masked.size(); ++r) {
      for (size_t k = 0; k < secret.size(); ++k) masked[r] += secret[k] * a[k][r];
    }
    const std::string key = query.contains("index")
                                ? std::to_string(query["index"].get<uint64_t>())
                                : std::string(*decode_hex(query["key"].get<std::string>()));
    const KeyPlace place = database.place(key);
    EXPECT_EQ(place.shard, query["shard"]);
    EXPECT_EQ(std::vector(place.rows.begin(), place.rows.begin() + place.row_count), query["rows"]);

    std::vector<uint8_t> packed(layout.query_bytes());
    DecodingSecret decoding =
        PreparedQuery(secret_of(s), std::move(masked))
            .encrypt(std::span(place.rows).first(place.row_count), layout.query_bits, packed);
    EXPECT_EQ(packed, bytes_of_hex(query["query"]));
    const std::vector<uint8_t> record =
        decode(std::move(decoding), layout,
               words_of_shard(layout, place.shard, bytes_of_hex(query["response"])).span(),
               served.hints()[place.shard]);
    EXPECT_EQ(record, bytes_of_hex(query["record"]));
    const std::optional<std::string> value = database.value_in(record, place);
    ASSERT_EQ(value.has_value(), !query["value"].is_null());
    if (value) {
      EXPECT_EQ(*value, decode_hex(query["value"].get<std::string>()));
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Databases, DecoderVectors,
                         testing::Values("database_keyword.json", "database_index.json"),
                         [](const auto& test) {
                           return std::string(test.param).find("index") == std::string::npos
                                      ? "keyword"
                                      : "index";
                         });

TEST(ServedDatabase, HasTheFrozenHints) {
  // The reference's hints are those of the vectors, so that the tests above stand on frozen ground.
  for (const char* name : {"database_keyword.json", "database_index.json"}) {
    const nlohmann::json vectors = read_vectors(name);
    const ServedDatabase& served = ServedDatabase::from_vectors(name);
    for (size_t shard = 0; shard < served.hints().size(); ++shard) {
      EXPECT_EQ(reference_pir::sha256(served.hints()[shard]),
                bytes_of_hex(vectors["shards"][shard]["hint_sha256"]));
    }
    EXPECT_EQ(served.table(), bytes_of_hex(vectors["table"]));
  }
}

class DecoderErrors : public testing::Test {
 protected:
  const ServedDatabase& served_ = ServedDatabase::from_vectors("database_keyword.json");
  const Layout layout_ = served_.layout();
  std::vector<uint8_t> response_ = std::vector<uint8_t>(layout_.response_bytes());
  std::vector<uint8_t> hint_ = served_.hints()[1];

  std::vector<uint8_t> decode_it() {
    return decode(DecodingSecret(SecretBuffer<uint32_t>(layout_.lwe->dimension)), layout_,
                  words_of_shard(layout_, 1, response_).span(), hint_);
  }
};

TEST_F(DecoderErrors, AResponseOfTheWrongLengthIsRefused) {
  EXPECT_NO_THROW(decode_it());
  response_.push_back(0);
  EXPECT_THROW(decode_it(), ProtocolViolation);
  response_.resize(layout_.response_bytes() - 1);
  EXPECT_THROW(decode_it(), ProtocolViolation);
}

TEST_F(DecoderErrors, UnusedBitsMustBeZero) {
  // 34 columns of 11 bits leave 2 bits of 47 bytes.
  response_.back() = 0x40;
  EXPECT_THROW(decode_it(), ProtocolViolation);
}

TEST_F(DecoderErrors, AHintOfTheWrongLengthIsRefused) {
  hint_.pop_back();
  EXPECT_THROW(decode_it(), AlteredCache);
}

TEST_F(DecoderErrors, ASecretDecodesOnce) {
  DecodingSecret secret(SecretBuffer<uint32_t>(layout_.lwe->dimension));
  const SecretBuffer<uint32_t> words = words_of_shard(layout_, 0, response_);
  decode(std::move(secret), layout_, words.span(), hint_);
  EXPECT_THROW(decode(std::move(secret), layout_, words.span(), hint_), std::logic_error);
}

}  // namespace
}  // namespace blindfuse
