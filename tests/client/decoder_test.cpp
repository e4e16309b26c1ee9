#include "client/decoder.h"

#include <blindfuse/errors.h>
#include <gtest/gtest.h>

#include <stdexcept>

#include "client/database_description.h"
#include "tests/client/fake_server.h"
#include "tests/client/seeded_random.h"
#include "tests/ring/plain_ring.h"
#include "tests/trapped_bytes.h"

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
    EXPECT_EQ(nlohmann::json(
                  std::vector(place.rows.begin(), place.rows.begin() + place.asks * layout.arity)),
              query["rows"]);

    std::vector<uint8_t> packed(layout.query_bytes());
    DecodingSecret decoding = PreparedQuery(ProcessToken::current(), database.manifest().seed,
                                            secret_of(s), std::move(masked))
                                  .encrypt({&place, 1}, layout, packed);
    EXPECT_EQ(packed, bytes_of_hex(query["query"]));
    const std::vector<uint8_t> record =
        decode(std::move(decoding), layout, place.shard,
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

// A client that asks for one number of an index database can read as many as there are shards. Not
// a thing that anyone needs: docs/THREAT_MODEL.md says it, and this shows that it is so.
TEST(IndexResponse, HoldsTheRowOfEveryShard) {
  const nlohmann::json vectors = read_vectors("database_index.json");
  const ServedDatabase& served = ServedDatabase::from_vectors("database_index.json");
  const Layout layout = served.layout();
  const nlohmann::json& values = vectors["values"];
  for (const nlohmann::json& query : vectors["queries"]) {
    if (query["rows"].empty()) continue;  // beyond the end
    SCOPED_TRACE(query["name"]);
    const uint64_t row = query["index"].get<uint64_t>() / layout.shard_count;
    const Bytes response = bytes_of_hex(query["response"]);
    for (uint32_t shard = 0; shard < layout.shard_count; ++shard) {
      // Section 5: the length, the value, zeros; zeros alone where there is no such number.
      Bytes expected;
      const uint64_t number = row * layout.shard_count + shard;
      if (number < values.size()) {
        expected = bytes_of_hex(values[number]);
        expected.insert(expected.begin(), static_cast<uint8_t>(expected.size()));
      }
      expected.resize(layout.record_bytes());
      EXPECT_EQ(decode(DecodingSecret(secret_of(query["s"])), layout, shard,
                       words_of_shard(layout, shard, response).span(), served.hints()[shard]),
                expected)
          << shard;
    }
  }
}

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
    return decode(DecodingSecret(SecretBuffer<uint32_t>(layout_.lwe->dimension)), layout_, 1,
                  words_of_shard(layout_, 1, response_).span(), hint_);
  }
};

TEST_F(DecoderErrors, AResponseOfTheWrongLengthIsRefused) {
  EXPECT_NO_THROW(decode_it());
  response_.push_back(0);
  EXPECT_THROW(decode_it(), ProtocolError);
  response_.resize(layout_.response_bytes() - 1);
  EXPECT_THROW(decode_it(), ProtocolError);
}

TEST_F(DecoderErrors, UnusedBitsMustBeZero) {
  // 34 columns of 11 bits leave 2 bits of 47 bytes.
  response_.back() = 0x40;
  EXPECT_THROW(decode_it(), ProtocolError);
}

TEST_F(DecoderErrors, AHintOfTheWrongLengthIsRefused) {
  hint_.pop_back();
  EXPECT_THROW(decode_it(), CacheError);
}

TEST_F(DecoderErrors, ASecretDecodesOnce) {
  DecodingSecret secret(SecretBuffer<uint32_t>(layout_.lwe->dimension));
  const SecretBuffer<uint32_t> words = words_of_shard(layout_, 0, response_);
  decode(std::move(secret), layout_, 0, words.span(), hint_);
  EXPECT_THROW(decode(std::move(secret), layout_, 0, words.span(), hint_), std::logic_error);
}

// Two records of bytes of chance in five packs, the last of which is not full, and their response
// by definition: body = s mask + Q / 256 byte. Records of 2101 bytes may lie in four packs, so four
// are what either is decoded by: 0 to 3 for the first, which lies in 0 to 2, and 1 to 4 for the
// second, which lies in 2 to 4.
struct PackedRecords {
  static constexpr uint64_t kModulus = 4'294'955'009;
  static constexpr size_t kPack = 1024;
  static constexpr size_t kRecordBytes = 2101;

  Layout layout;
  std::vector<uint32_t> secret = std::vector<uint32_t>(ring::kDimension);
  Bytes bytes = Bytes(2 * kRecordBytes);
  std::vector<Bytes> masks;
  Bytes response;

  PackedRecords() {
    layout.kind = DatabaseKind::kIndex;
    layout.shard_count = 2;
    layout.record = {0, 0, kRecordBytes};
    layout.lwe = find_lwe_params("ring-2048");
    layout.response_bits = 11;
    layout.hint_bits = 18;
    const RandomSource random = seeded_random(61);
    sample_ternary(random, secret);
    random(bytes);
    ring::plain::Coefficients s;
    for (size_t i = 0; i < ring::kDimension; ++i) {
      s[i] = secret[i] == 0xffffffff ? static_cast<uint32_t>(kModulus - 1) : secret[i];
    }
    reference_pir::Words sent;
    for (size_t first = 0; first < bytes.size(); first += kPack) {
      const auto mask = ring::plain::random_coefficients(62 + first, kModulus);
      const auto product = ring::plain::product(s, mask, kModulus);
      reference_pir::Words lowered;
      for (const uint32_t each : mask) lowered.push_back(nearest(each, 18));
      masks.push_back(reference_pir::pack(lowered, 18));
      for (size_t c = 0; c < kPack && first + c < bytes.size(); ++c) {
        const uint64_t word = product[c] + (uint64_t{bytes[first + c]} * kModulus + 128) / 256;
        sent.push_back(nearest(word % kModulus, 11));
      }
    }
    response = reference_pir::pack(sent, 11);
  }

  // To x 2^bits / Q, modulo 2^bits.
  static uint32_t nearest(uint64_t x, unsigned bits) {
    return static_cast<uint32_t>(((x << bits) + kModulus / 2) / kModulus % (1u << bits));
  }
};

class PackedDecoder : public testing::Test {
 protected:
  static const PackedRecords& packed() {
    static const PackedRecords made;
    return made;
  }

  static DecodingSecret secret() {
    SecretBuffer<uint32_t> words(packed().secret.size());
    std::copy(packed().secret.begin(), packed().secret.end(), words.span().begin());
    return DecodingSecret(std::move(words));
  }
  // Those of packs first .. last.
  static Bytes masks(size_t first, size_t last) {
    Bytes all;
    for (size_t pack = first; pack <= last; ++pack) {
      all.insert(all.end(), packed().masks[pack].begin(), packed().masks[pack].end());
    }
    return all;
  }
  static std::vector<uint8_t> decode_it(uint32_t shard, const Bytes& hint) {
    return decode(secret(), packed().layout, shard,
                  words_of_shard(packed().layout, shard, packed().response).span(), hint);
  }
};

TEST_F(PackedDecoder, ReadsRecordsThatLieInSeveralPacks) {
  constexpr size_t kBytes = PackedRecords::kRecordBytes;
  EXPECT_EQ(decode_it(0, masks(0, 3)), reference_pir::slice(packed().bytes, 0, kBytes));
  EXPECT_EQ(decode_it(1, masks(1, 4)), reference_pir::slice(packed().bytes, kBytes, kBytes));
  EXPECT_NE(decode_it(0, masks(1, 4)), reference_pir::slice(packed().bytes, 0, kBytes));
  EXPECT_NE(decode_it(1, masks(0, 3)), reference_pir::slice(packed().bytes, kBytes, kBytes));
}

TEST_F(PackedDecoder, TakesNothingOfAPackWithoutTheRecord) {
  using reference_pir::operator+;
  constexpr size_t kBytes = PackedRecords::kRecordBytes;
  EXPECT_EQ(decode_it(0, masks(0, 2) + masks(4, 4)),
            reference_pir::slice(packed().bytes, 0, kBytes));
  EXPECT_EQ(decode_it(1, masks(0, 0) + masks(2, 4)),
            reference_pir::slice(packed().bytes, kBytes, kBytes));
  EXPECT_NE(decode_it(0, masks(0, 1) + masks(3, 4)),
            reference_pir::slice(packed().bytes, 0, kBytes));
}

// How long decoding takes must not tell where in its packs a record lies.
TEST_F(PackedDecoder, DecodesPacksWithoutTheRecordAsWell) {
  const uint64_t part_bytes = packed().layout.hint_part_bytes();
  const auto decode_trapped = [](uint32_t shard, const TrappedBytes& hint) {
    decode(secret(), packed().layout, shard,
           words_of_shard(packed().layout, shard, packed().response).span(), hint.span());
  };
  const Bytes first = masks(0, 3), second = masks(1, 4);
  EXPECT_DEATH_IF_SUPPORTED(decode_trapped(0, TrappedBytes::from(3 * part_bytes, first)), "");
  EXPECT_DEATH_IF_SUPPORTED(decode_trapped(1, TrappedBytes::before(part_bytes, second)), "");
  decode_trapped(0, TrappedBytes::from(4 * part_bytes, first));
  decode_trapped(1, TrappedBytes::before(0, second));
}

TEST_F(PackedDecoder, RefusesHintsOfAnotherLength) {
  Bytes hint = masks(0, 3);
  EXPECT_NO_THROW(decode_it(0, hint));
  hint.pop_back();
  EXPECT_THROW(decode_it(0, hint), CacheError);
  hint.resize(hint.size() + 2);
  EXPECT_THROW(decode_it(0, hint), CacheError);
  // Even of those alone in which the record lies.
  EXPECT_THROW(decode_it(0, masks(0, 2)), CacheError);
  EXPECT_THROW(decode_it(1, masks(2, 4)), CacheError);
  EXPECT_THROW(decode_it(0, masks(0, 4)), CacheError);
  EXPECT_THROW(decode_it(0, {}), CacheError);
}

TEST_F(PackedDecoder, UsesASecretOnce) {
  DecodingSecret one = secret();
  const SecretBuffer<uint32_t> words = words_of_shard(packed().layout, 0, packed().response);
  decode(std::move(one), packed().layout, 0, words.span(), masks(0, 3));
  EXPECT_THROW(decode(std::move(one), packed().layout, 0, words.span(), masks(0, 3)),
               std::logic_error);
}

}  // namespace
}  // namespace blindfuse
