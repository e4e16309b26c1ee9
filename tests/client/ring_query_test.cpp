#include "client/ring_query.h"

#include <gtest/gtest.h>

#include <set>

#include "src/bit_packing.h"
#include "src/little_endian.h"
#include "src/ring/ring_transform.h"
#include "tests/client/seeded_random.h"
#include "tests/ring/plain_ring.h"

namespace blindfuse {
namespace {

using ring::kDimension;
using ring::kPackingModulus;
using ring::testing::Coefficients;
constexpr uint64_t kWords = uint64_t{1} << 32;
constexpr uint32_t kRows = 2 * kDimension;

// A query for no rows, with all bits, and everything that the server is not to know.
class RingQuery : public ::testing::Test {
 protected:
  RingQuery() {
    PreparedRingQuery prepared = prepare_ring_query(polynomials_, kRows, seeded_random(1));
    EXPECT_EQ(prepared.row_count(), kRows);
    std::vector<uint8_t> sent(packed_bytes(kRows, 32));
    const SecretBuffer<uint32_t> secret =
        std::move(prepared).encrypt({}, 32, sent, packing_keys_).take();
    EXPECT_EQ(secret.size(), kDimension);
    std::copy(secret.span().begin(), secret.span().end(), secret_.begin());
    for (uint32_t i = 0; i < kRows; ++i) words_.push_back(load_le<uint32_t>(&sent[4 * i]));
  }

  // The secret, -1, 0 and 1 modulo any number.
  Coefficients secret(uint64_t modulus) const {
    Coefficients made = secret_;
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
  Coefficients secret_;
  std::vector<uint32_t> words_;
  std::vector<uint8_t> packing_keys_;
};

TEST_F(RingQuery, SecretIsTernary) { expect_ternary(secret(kWords), kWords); }

TEST_F(RingQuery, BlocksAreSecretTimesPublicAndAnError) {
  std::set<Coefficients> errors;
  for (uint32_t j = 0; j < kRows / kDimension; ++j) {
    Coefficients a;
    polynomials_.fill_block(j, a);
    Coefficients error = ring::testing::product(secret(kWords), a, kWords);
    for (size_t i = 0; i < kDimension; ++i) error[i] = words_[j * kDimension + i] - error[i];
    expect_ternary(error, kWords);
    errors.insert(error);
  }
  errors.insert(secret(kWords));
  EXPECT_EQ(errors.size(), 3u);
}

// y + s w - g(s) 2^(8 + 8 k), g of X -> X^5 and of X -> X^-1.
TEST_F(RingQuery, PackingKeysAreAutomorphismsOfTheSecretAndAnError) {
  ASSERT_EQ(packing_keys_.size(), 6 * 4 * kDimension);
  const auto transform = ring::portable_transform(kPackingModulus);
  const Coefficients s = secret(kPackingModulus);
  std::set<Coefficients> errors;
  for (size_t key = 0; key < 2; ++key) {
    const Coefficients moved = key == 0 ? ring::testing::moved(s, 1, false, kPackingModulus)
                                        : ring::testing::moved(s, 0, true, kPackingModulus);
    for (size_t k = 0; k < 3; ++k) {
      Coefficients body;
      for (size_t i = 0; i < kDimension; ++i) {
        body[i] = load_le<uint32_t>(&packing_keys_[4 * ((3 * key + k) * kDimension + i)]);
      }
      transform->inverse(body);
      Coefficients mask;
      polynomials_.fill_key_mask(static_cast<ring::KeyIndex>(key), k, mask);
      transform->inverse(mask);
      const Coefficients product = ring::testing::product(s, mask, kPackingModulus);
      Coefficients error;
      for (size_t i = 0; i < kDimension; ++i) {
        const uint64_t digit = (static_cast<uint64_t>(moved[i]) << (8 + 8 * k)) % kPackingModulus;
        const uint64_t sum = uint64_t{body[i]} + product[i] + (kPackingModulus - digit);
        error[i] = static_cast<uint32_t>(sum % kPackingModulus);
      }
      expect_ternary(error, kPackingModulus);
      errors.insert(error);
    }
  }
  errors.insert(s);
  EXPECT_EQ(errors.size(), 7u);
}

TEST(RingQueryUse, ServesOnce) {
  PreparedRingQuery prepared =
      prepare_ring_query(ring::PublicPolynomials(ChaChaKey{}), kDimension, seeded_random(2));
  std::vector<uint8_t> sent(packed_bytes(kDimension, 28));
  std::vector<uint8_t> keys;
  RingDecoder decoder(std::move(prepared).encrypt({}, 28, sent, keys));
  EXPECT_THROW(static_cast<void>(std::move(prepared).encrypt({}, 28, sent, keys)),
               std::logic_error);
  const RingDecoder moved = std::move(decoder);
  const Coefficients zeros{};
  std::array<uint8_t, kDimension> bytes;
  EXPECT_THROW(decoder.decode(zeros, zeros, bytes), std::logic_error);
  moved.decode(zeros, zeros, bytes);
}

}  // namespace
}  // namespace blindfuse
