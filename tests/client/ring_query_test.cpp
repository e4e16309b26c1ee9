#include "client/ring_query.h"

#include <gtest/gtest.h>

#include <set>

#include "src/arithmetic/bit_sequence.h"
#include "src/arithmetic/little_endian.h"
#include "src/arithmetic/ring/ntt.h"
#include "src/protocol/chacha20.h"
#include "tests/client/seeded_random.h"
#include "tests/ring/plain_ring.h"

namespace blindfuse {
namespace {

using ring::kDimension;
using ring::kPackingModulus;
using ring::plain::Coefficients;
constexpr uint64_t kWords = uint64_t{1} << 32;
constexpr uint32_t kRows = 2 * kDimension;
constexpr size_t kSentKeyBytes = 24'576;
constexpr size_t kBatch = 2;

// A query for no rows, with all bits, as the server gets it, and its secret.
struct OpenedRingQuery {
  Coefficients secret;
  std::vector<uint32_t> words;
  std::vector<uint8_t> packing_key;

  explicit OpenedRingQuery(PreparedQuery prepared) {
    EXPECT_EQ(prepared.row_count(), kRows);
    std::vector<uint8_t> sent(4 * kRows + kSentKeyBytes);
    const SecretBuffer<uint32_t> taken = std::move(prepared).encrypt({}, 32, sent).take();
    EXPECT_EQ(taken.size(), kDimension);
    std::copy(taken.span().begin(), taken.span().end(), secret.begin());
    for (uint32_t i = 0; i < kRows; ++i) words.push_back(load_le<uint32_t>(&sent[4 * i]));
    packing_key.assign(sent.begin() + 4 * kRows, sent.end());
  }
};

// A query of a batch, and everything that the server is not to know.
class RingQuery : public ::testing::TestWithParam<size_t> {
 protected:
  RingQuery() : query_(std::move(prepared()[GetParam()])) {}

  std::vector<PreparedQuery> prepared() const {
    return RingQueryMaker(polynomials_, kRows).make(kBatch, seeded_random(1));
  }

  // The secret, -1, 0 and 1 modulo any number.
  Coefficients secret(uint64_t modulus) const {
    Coefficients made = query_.secret;
    for (uint32_t& each : made) {
      if (each == 0xffffffff) each = static_cast<uint32_t>(modulus - 1);
    }
    return made;
  }
  // How many of 0, 1 and -1 there are; fails for anything else.
  static void expect_ternary(const Coefficients& found, uint64_t modulus) {
    size_t counts[3] = {};
    for (const uint32_t each : found) {
      if (each == 0)
        ++counts[0];
      else if (each == 1)
        ++counts[1];
      else if (each == static_cast<uint32_t>(modulus - 1))
        ++counts[2];
      else
        FAIL() << each;
    }
    // A third each, within six standard deviations.
    for (const size_t count : counts) EXPECT_NEAR(static_cast<double>(count), 2048.0 / 3, 128);
  }

  const ring::PublicPolynomials polynomials_{ChaChaKey{9}};
  const OpenedRingQuery query_;
};

INSTANTIATE_TEST_SUITE_P(OfABatch, RingQuery, ::testing::Range(size_t{0}, kBatch));

TEST_P(RingQuery, SecretIsTernary) { expect_ternary(secret(kWords), kWords); }

TEST_P(RingQuery, BlocksAreSecretTimesPublicAndAnError) {
  std::set<Coefficients> errors;
  for (uint32_t j = 0; j < kRows / kDimension; ++j) {
    Coefficients a;
    polynomials_.fill_block(j, a);
    Coefficients error = ring::plain::product(secret(kWords), a, kWords);
    for (size_t i = 0; i < kDimension; ++i) {
      error[i] = query_.words[j * kDimension + i] - error[i];
    }
    expect_ternary(error, kWords);
    errors.insert(error);
  }
  errors.insert(secret(kWords));
  EXPECT_EQ(errors.size(), 3u);
}

// y + s w - g(s) 2^(8 + 8 k), g of X -> X^5.
TEST_P(RingQuery, PackingKeyIsAnAutomorphismOfTheSecretAndAnError) {
  ASSERT_EQ(query_.packing_key.size(), 3 * 4 * kDimension);
  const auto transform = ring::portable_ntt(kPackingModulus);
  const Coefficients s = secret(kPackingModulus);
  std::set<Coefficients> errors;
  const Coefficients moved = ring::plain::moved(s, 1, kPackingModulus);
  for (size_t k = 0; k < 3; ++k) {
    Coefficients body;
    for (size_t i = 0; i < kDimension; ++i) {
      body[i] = load_le<uint32_t>(&query_.packing_key[4 * (k * kDimension + i)]);
    }
    transform->inverse(body);
    Coefficients mask;
    polynomials_.fill_key_mask(k, mask);
    transform->inverse(mask);
    const Coefficients product = ring::plain::product(s, mask, kPackingModulus);
    Coefficients error;
    for (size_t i = 0; i < kDimension; ++i) {
      const uint64_t digit = (static_cast<uint64_t>(moved[i]) << (8 + 8 * k)) % kPackingModulus;
      const uint64_t sum = uint64_t{body[i]} + product[i] + (kPackingModulus - digit);
      error[i] = static_cast<uint32_t>(sum % kPackingModulus);
    }
    expect_ternary(error, kPackingModulus);
    errors.insert(error);
  }
  errors.insert(s);
  EXPECT_EQ(errors.size(), 4u);
}

// Packs of a database whose rows are two blocks.
class RingQueries : public ::testing::Test {
 protected:
  const ring::PublicPolynomials polynomials_{ChaChaKey{9}};
  const RingQueryMaker maker_{polynomials_, kRows};
};

TEST_F(RingQueries, OfABatchHaveNothingInCommon) {
  std::vector<PreparedQuery> prepared = maker_.make(3, seeded_random(3));
  ASSERT_EQ(prepared.size(), 3u);
  std::set<Coefficients> secrets;
  std::set<std::vector<uint32_t>> words;
  std::set<std::vector<uint8_t>> keys;
  for (PreparedQuery& each : prepared) {
    const OpenedRingQuery query(std::move(each));
    secrets.insert(query.secret);
    words.insert(query.words);
    keys.insert(query.packing_key);
  }
  EXPECT_EQ(secrets.size(), 3u);
  EXPECT_EQ(words.size(), 3u);
  EXPECT_EQ(keys.size(), 3u);
  EXPECT_TRUE(maker_.make(0, seeded_random(3)).empty());
}

TEST_F(RingQueries, AreTheSameTogetherAndOneByOne) {
  std::vector<PreparedQuery> together = maker_.make(2, seeded_random(5));
  const RandomSource random = seeded_random(5);
  for (PreparedQuery& each : together) {
    const OpenedRingQuery one(std::move(maker_.make(1, random).front()));
    const OpenedRingQuery same(std::move(each));
    EXPECT_EQ(one.secret, same.secret);
    EXPECT_EQ(one.words, same.words);
    EXPECT_EQ(one.packing_key, same.packing_key);
  }
}

// One secret for all buckets, under the public polynomials of each.
TEST_F(RingQueries, ForBucketsHavePolynomialsOfEach) {
  // Two buckets with one block each have as many words as OpenedRingQuery.
  const RingQueryMaker two(polynomials_, kDimension, {}, 2);
  const OpenedRingQuery query(std::move(two.make(1, seeded_random(6)).front()));
  std::set<Coefficients> errors;
  for (uint32_t bucket = 0; bucket < 2; ++bucket) {
    // The keystream's words with nonce 2^32 bucket.
    Coefficients a;
    chacha20_keystream(ChaChaKey{9}, uint64_t{bucket} << 32, a);
    const Coefficients product = ring::plain::product(query.secret, a, kWords);
    Coefficients error;
    for (size_t i = 0; i < kDimension; ++i) {
      error[i] = query.words[bucket * kDimension + i] - product[i];
      ASSERT_LE(error[i] + 1, 2u) << bucket << " " << i;
    }
    errors.insert(error);
  }
  EXPECT_EQ(errors.size(), 2u);
}

TEST_F(RingQueries, ForBucketsOfSeveralBlocks) {
  constexpr uint32_t kBuckets = 3;
  const RingQueryMaker maker(polynomials_, kRows, {}, kBuckets);
  std::vector<uint64_t> done;
  const auto follow = [&](const ClientProgress& progress) {
    EXPECT_EQ(progress.total, kBuckets * kRows);
    done.push_back(progress.done);
    return true;
  };
  PreparedQuery prepared = std::move(maker.make(1, seeded_random(7), follow).front());
  ASSERT_EQ(prepared.row_count(), kBuckets * kRows);
  EXPECT_EQ(done, (std::vector<uint64_t>{0, 0, 0, kDimension, 2 * kDimension, 3 * kDimension,
                                         4 * kDimension, 5 * kDimension, 6 * kDimension}));
  std::vector<uint8_t> sent(4 * kBuckets * kRows + kSentKeyBytes);
  const SecretBuffer<uint32_t> secret = std::move(prepared).encrypt({}, 32, sent).take();
  Coefficients s;
  std::copy(secret.span().begin(), secret.span().end(), s.begin());
  for (uint32_t block = 0; block < kBuckets * 2; ++block) {
    Coefficients a;
    polynomials_.fill_block(block / 2, block % 2, a);
    const Coefficients product = ring::plain::product(s, a, kWords);
    for (size_t i = 0; i < kDimension; ++i) {
      const auto word = load_le<uint32_t>(&sent[4 * (block * kDimension + i)]);
      ASSERT_LE(word - product[i] + 1, 2u) << block << " " << i;
    }
  }
}

TEST_F(RingQueries, ReportRows) {
  std::vector<uint64_t> done;
  const auto follow = [&](const ClientProgress& progress) {
    EXPECT_EQ(progress.stage, ClientStage::kPreparingQueries);
    EXPECT_EQ(progress.total, kRows);
    done.push_back(progress.done);
    return true;
  };
  maker_.make(2, seeded_random(4), follow);
  std::vector<uint64_t> expected(2 * 3);  // after each polynomial of the keys
  expected.insert(expected.end(), {kDimension, kRows});
  EXPECT_EQ(done, expected);
}

// Whenever it is told to: what it is asked for before is not made for nothing.
TEST_F(RingQueries, StopAtOnceWhenTold) {
  for (const size_t last : {1u, 2u, 4u, 6u, 7u}) {
    SCOPED_TRACE(last);
    size_t reports = 0;
    size_t drawn = 0;
    const RandomSource seeded = seeded_random(4);
    const RandomSource random = [&](std::span<uint8_t> bytes) {
      ++drawn;
      seeded(bytes);
    };
    const auto stop = [&](const ClientProgress&) { return ++reports < last; };
    EXPECT_THROW(maker_.make(2, random, stop), CancelledError);
    EXPECT_EQ(reports, last);
    // s and e of each query that was begun, and an error for each polynomial.
    const size_t polynomials = std::min<size_t>(last, 6);
    EXPECT_EQ(drawn, polynomials + 2 * ((polynomials + 2) / 3));
  }
}

TEST(RingQueryUse, ServesOnce) {
  PreparedQuery prepared =
      std::move(RingQueryMaker(ring::PublicPolynomials(ChaChaKey{}), kDimension)
                    .make(1, seeded_random(2))
                    .front());
  std::vector<uint8_t> sent(bit_sequence_bytes(kDimension, 28) + kSentKeyBytes);
  RingDecoder decoder(std::move(prepared).encrypt({}, 28, sent));
  EXPECT_THROW(static_cast<void>(std::move(prepared).encrypt({}, 28, sent)), std::logic_error);
  const RingDecoder moved = std::move(decoder);
  const Coefficients zeros{};
  const auto body = std::span(zeros).first<kPackColumns>();
  std::array<uint8_t, kPackColumns> bytes;
  EXPECT_THROW(decoder.decode(zeros, body, bytes), std::logic_error);
  moved.decode(zeros, body, bytes);
}

}  // namespace
}  // namespace blindfuse
