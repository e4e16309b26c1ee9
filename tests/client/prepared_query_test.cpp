#include "client/prepared_query.h"

#include <gtest/gtest.h>

#include <cstring>
#include <stdexcept>
#include <type_traits>
#include <vector>

#include "src/arithmetic/bit_sequence.h"
#include "tests/client/seeded_random.h"
#include "tests/reference_pir.h"

namespace blindfuse {
namespace {

static_assert(!std::is_copy_constructible_v<PreparedQuery>);
static_assert(!std::is_copy_assignable_v<PreparedQuery>);
static_assert(std::is_nothrow_move_constructible_v<PreparedQuery>);
static_assert(!std::is_copy_constructible_v<DecodingSecret>);
static_assert(!std::is_copy_assignable_v<DecodingSecret>);

// Whether a T can be used up without being given away with std::move.
template <class T>
concept EncryptsAsLvalue = requires(T query, std::span<const uint32_t> rows,
                                    std::span<uint8_t> out) {
  query.encrypt(rows, 32, out);
};
template <class T>
concept TakenAsLvalue = requires(T secret) {
  secret.take();
};
static_assert(!EncryptsAsLvalue<PreparedQuery>);
static_assert(!TakenAsLvalue<DecodingSecret>);

struct Opened {
  std::vector<uint32_t> secret;
  std::vector<uint32_t> words;  // of the query before rounding
};

Opened open(PreparedQuery query, std::span<const uint32_t> rows = {}) {
  Opened opened;
  opened.words.resize(query.row_count());
  DecodingSecret secret = std::move(query).encrypt(
      rows, 32, {reinterpret_cast<uint8_t*>(opened.words.data()), opened.words.size() * 4});
  const SecretBuffer<uint32_t> words = std::move(secret).take();
  opened.secret.assign(words.span().begin(), words.span().end());
  return opened;
}

constexpr MatrixSeed kSeed = {9, 8, 7};

PreparedQuery query_of(const std::vector<uint32_t>& secret, const std::vector<uint32_t>& masked) {
  SecretBuffer<uint32_t> s(secret.size()), b(masked.size());
  std::copy(secret.begin(), secret.end(), s.span().begin());
  std::copy(masked.begin(), masked.end(), b.span().begin());
  return PreparedQuery(ProcessToken::current(), kSeed, std::move(s), std::move(b));
}

// A by the reference.
reference_pir::PublicMatrix reference_matrix(size_t dimension, size_t row_count) {
  return reference_pir::public_matrix(reference_pir::Bytes(kSeed.begin(), kSeed.end()), dimension,
                                      row_count);
}

TEST(PreparedQuery, IsSentOnce) {
  PreparedQuery query = query_of({1, 0}, std::vector<uint32_t>(64, 5));
  std::vector<uint8_t> out(64 * 4);
  const DecodingSecret secret = std::move(query).encrypt({}, 32, out);
  EXPECT_THROW((void)std::move(query).encrypt({}, 32, out), std::logic_error);
  PreparedQuery moved_from = query_of({1, 0}, std::vector<uint32_t>(64, 5));
  const PreparedQuery moved_to = std::move(moved_from);
  EXPECT_THROW((void)std::move(moved_from).encrypt({}, 32, out), std::logic_error);
}

TEST(PreparedQuery, CarriesItsPackingKeysBehindItsWordsOnce) {
  const std::vector<uint8_t> keys = {1, 2, 3, 4, 5, 6, 7};
  SecretBuffer<uint32_t> masked(64);
  masked[0] = 0x12345678;
  PreparedQuery query(ProcessToken::current(), kSeed, SecretBuffer<uint32_t>(2), std::move(masked),
                      keys);
  EXPECT_EQ(query.row_count(), 64u);
  PreparedQuery moved = std::move(query);
  std::vector<uint8_t> out(64 * 4 + 7);
  const DecodingSecret secret = std::move(moved).encrypt({}, 32, out);
  EXPECT_EQ(std::vector<uint8_t>(out.begin(), out.begin() + 4),
            (std::vector<uint8_t>{0x78, 0x56, 0x34, 0x12}));
  EXPECT_EQ(std::vector<uint8_t>(out.begin() + 64 * 4, out.end()), keys);
  // Neither the one that was moved away nor the one that was used has any left.
  for (PreparedQuery* gone : {&query, &moved}) {
    EXPECT_THROW((void)std::move(*gone).encrypt({}, 32, out), std::logic_error);
    EXPECT_EQ(gone->row_count(), 0u);
  }
}

// Of three buckets with 64 rows each.
class QueryForBuckets : public testing::Test {
 protected:
  QueryForBuckets() {
    layout_.row_count = 64;
    layout_.query_bits = 32;
    layout_.batch = BatchCode{.keys_per_request = 2, .bucket_count = 3};
  }

  static PreparedQuery prepared(const std::vector<uint32_t>& masked) {
    SecretBuffer<uint32_t> words(masked.size());
    std::copy(masked.begin(), masked.end(), words.span().begin());
    return PreparedQuery(ProcessToken::current(), kSeed, SecretBuffer<uint32_t>(2),
                         std::move(words), {}, {}, 3);
  }
  std::vector<uint32_t> encrypted(const std::vector<uint32_t>& masked,
                                  const std::vector<KeyPlace>& buckets) const {
    std::vector<uint32_t> words(masked.size());
    (void)prepared(masked).encrypt(buckets, layout_,
                                   {reinterpret_cast<uint8_t*>(words.data()), words.size() * 4});
    return words;
  }

  Layout layout_;
};

TEST_F(QueryForBuckets, AddsTheScaleAtTheRowsOfEachBucketThatIsAsked) {
  std::vector<uint32_t> masked(3 * 64, 1000);
  masked[128 + 7] = 0xff000001;
  const std::vector<KeyPlace> buckets = {
      {.asks = 1, .rows = {0, 62, 63}}, {.rows = {1, 2, 3}}, {.asks = 1, .rows = {7, 20, 40}}};
  std::vector<uint32_t> expected = masked;
  for (const size_t word : {0, 62, 63, 128 + 20, 128 + 40}) expected[word] += 1 << 24;
  expected[128 + 7] = 1;
  EXPECT_EQ(encrypted(masked, buckets), expected);
}

TEST_F(QueryForBuckets, AddsNothingForNoKeys) {
  const std::vector<uint32_t> masked(3 * 64, 5);
  EXPECT_EQ(encrypted(masked, std::vector<KeyPlace>(3)), masked);
}

// A bucket that is not asked is written to as others are: rows that it lacks are found.
TEST_F(QueryForBuckets, TouchesTheRowsOfABucketThatIsNotAsked) {
  const std::vector<uint32_t> masked(3 * 64, 5);
  for (size_t bucket = 0; bucket < 3; ++bucket) {
    for (size_t row = 0; row < 3; ++row) {
      std::vector<KeyPlace> buckets(3);
      buckets[bucket].rows[row] = 64;
      EXPECT_DEATH_IF_SUPPORTED(encrypted(masked, buckets), "rows lie in the bucket");
    }
  }
}

TEST_F(QueryForBuckets, IsForDatabasesWithItsBuckets) {
  const std::vector<uint32_t> masked(3 * 64, 5);
  layout_.batch->bucket_count = 4;
  EXPECT_DEATH_IF_SUPPORTED(encrypted(masked, std::vector<KeyPlace>(4)),
                            "the query has the database's buckets");
}

TEST(DecodingSecret, IsTakenOnce) {
  DecodingSecret secret(SecretBuffer<uint32_t>(3));
  EXPECT_EQ(std::move(secret).take().size(), 3u);
  EXPECT_THROW((void)std::move(secret).take(), std::logic_error);
}

TEST(PreparedQuery, AddsTheScaleAtItsRowsAndWraps) {
  std::vector<uint32_t> masked(64, 1000);
  masked[3] = 0xff000001;
  const std::vector<uint32_t> rows = {3, 63};
  const Opened opened = open(query_of({0}, masked), rows);
  masked[3] = 1;
  masked[63] = 1000 + (1 << 24);
  EXPECT_EQ(opened.words, masked);
}

TEST(PreparedQuery, IsRoundedAndPackedAsTheReferenceDoes) {
  const RandomSource random = seeded_random(21);
  std::vector<uint32_t> masked(128);
  random({reinterpret_cast<uint8_t*>(masked.data()), masked.size() * 4});
  const std::vector<uint32_t> rows = {0, 64, 127};
  std::vector<uint32_t> words = masked;
  for (const uint32_t row : rows) words[row] += 1u << 24;
  for (unsigned bits = 24; bits <= 32; ++bits) {
    std::vector<uint8_t> out(bit_sequence_bytes(128, bits));
    (void)query_of({0}, masked).encrypt(rows, bits, out);
    EXPECT_EQ(out, reference_pir::round_and_pack(words, bits)) << bits;
  }
}

TEST(PrepareQueries, IsTheSumThatTheProtocolSays) {
  // Bytes of 5: the digits 2 1 0 0 0 of base 3, less one, over and over; s first, then e.
  constexpr int kPattern[] = {1, 0, -1, -1, -1};
  constexpr uint32_t kDimension = 37, kRows = 192;
  auto queries =
      prepare_queries(PublicMatrix(kSeed, kDimension), kRows, 1, 1, 1, constant_random(5));
  ASSERT_EQ(queries.size(), 1u);
  const Opened opened = open(std::move(queries[0]));
  reference_pir::Ternary s, e;
  for (size_t k = 0; k < kDimension; ++k) s.push_back(kPattern[k % 5]);
  for (size_t r = 0; r < kRows; ++r) e.push_back(kPattern[r % 5]);
  EXPECT_EQ(opened.words, reference_pir::encrypt(reference_matrix(kDimension, kRows), s, e,
                                                 reference_pir::Words(kRows, 0)));
}

TEST(PrepareQueries, ErrorsAreTernaryAndQueriesDiffer) {
  constexpr uint32_t kDimension = 1288, kRows = 640;
  const auto a = reference_matrix(kDimension, kRows);
  auto queries =
      prepare_queries(PublicMatrix(kSeed, kDimension), kRows, 1, 3, 2, seeded_random(31));
  std::vector<std::vector<uint32_t>> errors, secrets;
  for (PreparedQuery& query : queries) {
    const Opened opened = open(std::move(query));
    std::vector<uint32_t> error = opened.words;
    for (size_t r = 0; r < kRows; ++r) {
      for (size_t k = 0; k < kDimension; ++k) error[r] -= opened.secret[k] * a[k][r];
      ASSERT_LE(error[r] + 1, 2u);
    }
    for (const uint32_t word : opened.secret) ASSERT_LE(word + 1, 2u);
    errors.push_back(error);
    secrets.push_back(opened.secret);
  }
  EXPECT_NE(secrets[0], secrets[1]);
  EXPECT_NE(secrets[1], secrets[2]);
  EXPECT_NE(errors[0], errors[1]);
  EXPECT_NE(errors[1], errors[2]);
}

TEST(PrepareQueries, OnePassEqualsSeparatePassesForAnyThreads) {
  constexpr uint32_t kRows = 64 * 9;
  const PublicMatrix a(kSeed, 100);
  const auto opened = [](std::vector<PreparedQuery> queries) {
    std::vector<std::vector<uint32_t>> words;
    for (PreparedQuery& query : queries) {
      Opened one = open(std::move(query));
      words.push_back(one.secret);
      words.push_back(one.words);
    }
    return words;
  };
  EXPECT_TRUE(prepare_queries(a, kRows, 1, 0, 1, seeded_random(1)).empty());
  const auto together = opened(prepare_queries(a, kRows, 1, 6, 1, seeded_random(41)));
  EXPECT_EQ(opened(prepare_queries(a, kRows, 1, 6, 3, seeded_random(41))), together);
  EXPECT_EQ(opened(prepare_queries(a, kRows, 1, 6, 0, seeded_random(41))), together);
  EXPECT_EQ(opened(prepare_queries(a, kRows, 1, 6, 50, seeded_random(41))), together);
  std::vector<PreparedQuery> apart;
  const RandomSource random = seeded_random(41);
  for (int i = 0; i < 6; ++i)
    apart.push_back(std::move(prepare_queries(a, kRows, 1, 1, 1, random)[0]));
  EXPECT_EQ(opened(std::move(apart)), together);
}

TEST(PrepareQueries, ReportsProgressAndStopsWhenTold) {
  const PublicMatrix a(kSeed, 100);
  uint64_t last = 0;
  const auto follow = [&](const ClientProgress& progress) {
    EXPECT_EQ(progress.stage, ClientStage::kPreparingQueries);
    EXPECT_EQ(progress.total, 640u);
    EXPECT_GT(progress.done, 0u);
    last = std::max(last, progress.done);
    return true;
  };
  prepare_queries(a, 640, 1, 1, 1, seeded_random(1), follow);
  EXPECT_EQ(last, 640u);
  for (const unsigned threads : {1u, 4u}) {
    EXPECT_THROW(prepare_queries(a, 64'000, 1, 2, threads, seeded_random(1),
                                 [](const ClientProgress&) { return false; }),
                 CancelledError);
  }
}

// Clients that draw again when adding 2^24 wraps never send a word below 2^24 at the rows they ask
// for. Ours must, as often as at any other row.
TEST(Query, WordsAtQueriedRowsAreUniform) {
  constexpr uint64_t kQueries = 100'000;
  constexpr uint32_t kWatched[] = {7, 21, 55, 8, 40};  // the last two are not asked for
  const std::vector<uint32_t> rows = {7, 21, 55};
  const PublicMatrix a(kSeed, 48);
  auto queries = prepare_queries(a, 64, 1, kQueries, 1, seeded_random(51));
  std::vector<std::vector<uint64_t>> counts(5, std::vector<uint64_t>(256));
  std::vector<uint32_t> words(64);
  for (PreparedQuery& query : queries) {
    (void)std::move(query).encrypt(rows, 32, {reinterpret_cast<uint8_t*>(words.data()), 256});
    for (size_t i = 0; i < 5; ++i) ++counts[i][words[kWatched[i]] >> 24];
  }
  for (size_t i = 0; i < 5; ++i) {
    // 255 degrees of freedom: exceeded with probability 1e-6.
    EXPECT_LT(chi_square(counts[i]), 374) << "row " << kWatched[i];
    // 391 expected, standard deviation 20.
    EXPECT_NEAR(static_cast<double>(counts[i][0]), kQueries / 256.0, 100)
        << "words below 2^24 at row " << kWatched[i];
  }
}

}  // namespace
}  // namespace blindfuse
