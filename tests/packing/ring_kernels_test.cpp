// Every kernel against the portable one and the definitions, bit for bit.
#include "host/cpu/packing/ring_kernels.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <random>
#include <vector>

#include "host/cpu/packing/packing_keys.h"
#include "src/arithmetic/little_endian.h"
#include "src/arithmetic/packing_table.h"
#include "tests/packing/ring_kernel_names.h"
#include "tests/ring/plain_ring.h"

namespace blindfuse {
namespace {

using ring::kDimension;
using ring::kPackingModulus;
using ring::plain::Coefficients;

class RingKernelTest : public ::testing::TestWithParam<RingKernel> {
 protected:
  // Random, all zeros, all as large as can be, and one number at each end.
  static std::vector<Coefficients> polynomials(uint32_t modulus) {
    std::vector<Coefficients> made;
    for (uint64_t seed = 0; seed < 4; ++seed) {
      made.push_back(ring::plain::random_coefficients(seed, modulus));
    }
    made.emplace_back().fill(0);
    made.emplace_back().fill(modulus - 1);
    made.emplace_back().fill(0);
    made.back().front() = 1;
    made.emplace_back().fill(0);
    made.back().back() = modulus - 1;
    return made;
  }
};

// Of kernels that do not sum a batch query by query.
class RingBatchKernelTest : public ::testing::TestWithParam<RingKernel> {};

std::vector<RingKernel> ring_kernels_for_batches() {
  std::vector<RingKernel> found = ring_kernels();
  std::erase_if(found, [](const RingKernel& kernel) { return kernel.batch == nullptr; });
  return found;
}

TEST_P(RingKernelTest, TransformAsThePortableOneDoes) {
  for (const uint32_t modulus : {ring::kPackingModulus, ring::kSecondModulus}) {
    const auto portable = ring::portable_ntt(modulus);
    const auto ntt = make_ntt(GetParam(), modulus);
    for (const Coefficients& each : polynomials(modulus)) {
      Coefficients expected = each;
      portable->forward(expected);
      Coefficients found = each;
      ntt->forward(found);
      EXPECT_EQ(found, expected);
      ntt->inverse(found);
      EXPECT_EQ(found, each);
    }
  }
}

// Numbers below 2^32 minus the modulus have two forms of 32 bits: with the modulus added, and
// without.
TEST_P(RingKernelTest, TransformToTheLeastAndTheLargestValues) {
  for (const uint32_t modulus : {ring::kPackingModulus, ring::kSecondModulus}) {
    const auto portable = ring::portable_ntt(modulus);
    const auto ntt = make_ntt(GetParam(), modulus);
    Coefficients values;
    for (uint32_t i = 0; i < kDimension; ++i) {
      const uint32_t least = i % (-modulus);
      values[i] = i % 4 == 3 ? modulus - 1 - least : least;
    }
    Coefficients found = values;
    portable->inverse(found);
    ntt->forward(found);
    EXPECT_EQ(found, values);
  }
}

TEST_P(RingKernelTest, TransformPolynomialsOfFewCoefficients) {
  const auto portable = ring::portable_ntt(kPackingModulus);
  const auto ntt = make_ntt(GetParam(), kPackingModulus);
  for (const size_t count : {0,  1,  7,   8,   9,   15,  16,  17,   31,   32,   33,
                             64, 65, 256, 257, 511, 512, 513, 1024, 1025, 2047, 2048}) {
    Coefficients expected = ring::plain::random_coefficients(count, kPackingModulus);
    std::fill(expected.begin() + static_cast<std::ptrdiff_t>(count), expected.end(), 0u);
    Coefficients found = expected;
    portable->forward(expected);
    ntt->forward_first(found, count);
    EXPECT_EQ(found, expected) << count;
  }
}

TEST_P(RingKernelTest, JoinHalves) {
  const auto ntt = make_ntt(GetParam(), kPackingModulus);
  for (const Coefficients& values : polynomials(kPackingModulus)) {
    Coefficients joined;
    ntt->join_halves(values, joined);
    for (size_t i = 0; i < ring::kOrbit; ++i) {
      const uint64_t first = values[i], second = values[ring::kOrbit + i];
      ASSERT_EQ(joined[i], (first + second) % kPackingModulus);
      ASSERT_EQ(joined[ring::kOrbit + i], (second + kPackingModulus - first) % kPackingModulus);
    }
  }
}

// The sum of three products that are divided by 2^32, with keys that begin at any word.
TEST_P(RingKernelTest, AddProductsOfDigitsWithKeys) {
  constexpr uint64_t kTwo32 = (uint64_t{1} << 32) % kPackingModulus;
  const auto ntt = make_ntt(GetParam(), kPackingModulus);
  const std::vector<Coefficients> all = polynomials(kPackingModulus);
  for (size_t first = 0; first < all.size(); ++first) {
    const auto each = [&](size_t i) -> const Coefficients& {
      return all[(first + i) % all.size()];
    };
    Coefficients sum = each(0);
    const DigitProducts products{
        .digits = {each(0).data(), each(1).data(), each(2).data()},
        .keys = {each(1).data() + first, each(3).data() + 1021, each(5).data() + ring::kOrbit},
        .sum = sum.data()};
    ntt->add_digit_products(products);
    for (size_t i = 0; i < ring::kOrbit; ++i) {
      ASSERT_LT(sum[i], kPackingModulus);
      uint64_t expected = 0;
      for (size_t k = 0; k < ring::kDigits; ++k) {
        expected += uint64_t{products.digits[k][i]} * products.keys[k][i] % kPackingModulus;
      }
      const uint64_t added = (uint64_t{sum[i]} + kPackingModulus - each(0)[i]) % kPackingModulus;
      ASSERT_EQ(added * kTwo32 % kPackingModulus, expected % kPackingModulus);
    }
  }
}

// Sums that reach the modulus, and stay below 2^32.
TEST_P(RingKernelTest, ReduceSumsOfProductsOfDigits) {
  constexpr uint32_t kTwo32 = -kPackingModulus;
  const auto ntt = make_ntt(GetParam(), kPackingModulus);
  Coefficients ones, keys, sum;
  ones.fill(1);
  sum.fill(kPackingModulus - 1);
  for (uint32_t i = 0; i < kDimension; ++i) keys[i] = i * kTwo32;
  ntt->add_digit_products({.digits = {ones.data(), ones.data(), ones.data()},
                           .keys = {keys.data(), keys.data(), keys.data()},
                           .sum = sum.data()});
  EXPECT_EQ(sum[0], kPackingModulus - 1);
  for (uint32_t i = 1; i < ring::kOrbit; ++i) EXPECT_EQ(sum[i], 3 * i - 1);

  // And those that reach the modulus first and pass 2^32 then: once, and twice.
  Coefficients largest;
  largest.fill(kPackingModulus - kTwo32);  // minus 1, times 2^32
  sum.fill(kPackingModulus - 1);
  ntt->add_digit_products({.digits = {ones.data(), ones.data(), ones.data()},
                           .keys = {keys.data(), largest.data(), largest.data()},
                           .sum = sum.data()});
  for (uint32_t i = 3; i < ring::kOrbit; ++i) EXPECT_EQ(sum[i], i - 3);
}

TEST_P(RingKernelTest, AddProductsAsThePortableOneDoes) {
  for (const uint32_t modulus : {ring::kPackingModulus, ring::kSecondModulus}) {
    const auto portable = ring::portable_ntt(modulus);
    const auto ntt = make_ntt(GetParam(), modulus);
    const std::vector<Coefficients> all = polynomials(modulus);
    for (size_t i = 0; i < all.size(); ++i) {
      Coefficients expected = all[i];
      Coefficients found = all[i];
      for (const Coefficients& other : all) {
        portable->add_products(all[i], other, expected);
        ntt->add_products(all[i], other, found);
        EXPECT_EQ(found, expected);
      }
    }
  }
}

TEST_P(RingKernelTest, AddProductsThatAreDividedBy2To32) {
  constexpr uint64_t kTwo32 = uint64_t{1} << 32;
  for (const uint32_t modulus : {ring::kPackingModulus, ring::kSecondModulus}) {
    const auto ntt = make_ntt(GetParam(), modulus);
    const std::vector<Coefficients> all = polynomials(modulus);
    for (const Coefficients& a : all) {
      for (const Coefficients& b : all) {
        Coefficients sum = all[0];
        ntt->add_divided_products(a, b, sum);
        for (size_t i = 0; i < kDimension; ++i) {
          ASSERT_LT(sum[i], modulus);
          // 2^32 times what was added is the product.
          const uint64_t added = (uint64_t{sum[i]} + modulus - all[0][i]) % modulus;
          ASSERT_EQ(added * (kTwo32 % modulus) % modulus, uint64_t{a[i]} * b[i] % modulus);
        }
      }
    }
  }
}

// By what digits are for: small, and near the number when they are put together.
TEST_P(RingKernelTest, DecomposeIntoDigitsThatMakeTheNumberAgain) {
  const auto ntt = make_ntt(GetParam(), kPackingModulus);
  std::vector<Coefficients> all = polynomials(kPackingModulus);
  Coefficients& edges = all.emplace_back();
  for (uint32_t i = 0; i < kDimension; ++i) {
    // Around zero, both sides of half the modulus, and where digits carry.
    const uint64_t bases[] = {0, kPackingModulus / 2, 1u << 15, 1u << 23};
    edges[i] =
        static_cast<uint32_t>((bases[i % 4] + kPackingModulus + i / 4 - 256) % kPackingModulus);
  }
  DigitPolynomials digits, portable;
  for (const Coefficients& polynomial : all) {
    ntt->decompose(polynomial, digits);
    make_ntt(ring_kernels().back(), kPackingModulus)->decompose(polynomial, portable);
    ASSERT_EQ(digits, portable);
    for (size_t i = 0; i < kDimension; ++i) {
      int64_t sum = 0;
      for (size_t k = 0; k < ring::kDigits; ++k) {
        ASSERT_LT(digits[k][i], kPackingModulus);
        const int64_t digit = digits[k][i] > kPackingModulus / 2
                                  ? int64_t{digits[k][i]} - kPackingModulus
                                  : int64_t{digits[k][i]};
        ASSERT_LE(std::abs(digit), 128);
        sum += digit * (int64_t{1} << (8 + 8 * k));
      }
      const int64_t apart = std::abs((sum - int64_t{polynomial[i]}) % int64_t{kPackingModulus});
      ASSERT_LE(std::min(apart, kPackingModulus - apart), 128);
    }
  }
}

using Word = std::function<uint32_t()>;

std::vector<uint32_t> words_of(size_t count, const Word& word) {
  std::vector<uint32_t> words(count);
  std::generate(words.begin(), words.end(), word);
  return words;
}

// Keys of some queries, each word by `word`.
struct Keys {
  std::vector<std::vector<uint32_t>> plain;
  std::vector<PackingKeys> keys;
  std::vector<const uint32_t*> pointers;

  Keys(size_t query_count, const Word& word) {
    for (size_t q = 0; q < query_count; ++q) {
      const std::vector<uint32_t>& words = plain.emplace_back(words_of(ring::kKeyWords, word));
      std::vector<uint8_t> bytes(ring::kKeyBytes);
      for (size_t i = 0; i < ring::kKeyWords; ++i) store_le(bytes.data() + 4 * i, words[i]);
      keys.push_back(PackingKeys::read(bytes));
    }
    for (const PackingKeys& each : keys) pointers.push_back(each.words());
  }
};

// By the definition, in whole numbers: of the first group of `table`, as if it were that of point.
uint32_t expected_sum(const std::vector<uint32_t>& table, const std::vector<uint32_t>& keys,
                      size_t point, size_t i) {
  uint64_t sum = 0;
  for (size_t number = 0; number < kKeySwitches; ++number) {
    const size_t power = key_switch_to(number).power;
    for (size_t k = 0; k < ring::kDigits; ++k) {
      const ring::Polynomial values(keys.data() + k * kDimension, kDimension);
      // As ring::apply does it, of one value.
      const size_t half = (point + i) / ring::kOrbit;
      const uint32_t key = values[half * ring::kOrbit + (point + i + power) % ring::kOrbit];
      const uint64_t product = static_cast<uint64_t>(table[table_place(0, number, k) + i]) * key;
      sum = (sum + product % kPackingModulus) % kPackingModulus;
    }
  }
  return static_cast<uint32_t>(sum);
}

void expect_sums(const RingKernel& kernel, size_t query_count, size_t point, const Word& word) {
  const std::vector<uint32_t> table = words_of(kGroupWords, word);
  const Keys keys(query_count, word);
  std::vector<uint32_t> sums(query_count * kPointsTogether, 123);
  kernel.sum_group({table.data(), keys.pointers.data(), query_count, point, sums.data()});
  for (size_t q = 0; q < query_count; ++q) {
    for (size_t i = 0; i < kPointsTogether; ++i) {
      ASSERT_EQ(sums[q * kPointsTogether + i], expected_sum(table, keys.plain[q], point, i))
          << q << " " << i;
    }
  }
}

void expect_batch_sums(const BatchSums& batch, size_t table_count, size_t query_count, size_t point,
                       const Word& word) {
  std::vector<std::vector<uint32_t>> tables;
  std::vector<const uint32_t*> table_pointers;
  for (size_t t = 0; t < table_count; ++t) {
    tables.push_back(words_of(kGroupWords, word));
    table_pointers.push_back(tables.back().data());
  }
  const Keys keys(query_count, word);
  struct alignas(64) Line {
    uint8_t bytes[64];
  };
  // Not zero, as nothing may depend on what was there.
  std::vector<Line> arranged(batch.arranged_bytes(query_count) / 64),
      scratch((batch.scratch_bytes(table_count, query_count) + 63) / 64);
  std::memset(arranged.data(), 0xa5, arranged.size() * 64);
  std::memset(scratch.data(), 0xa5, scratch.size() * 64);
  for (size_t part = 0; part < batch.groups(query_count) * batch.key_parts; ++part) {
    const size_t first = part / batch.key_parts * batch.queries_together;
    batch.arrange_keys(keys.pointers.data() + first,
                       std::min(batch.queries_together, query_count - first),
                       part % batch.key_parts, arranged[0].bytes + part * batch.key_part_bytes);
  }
  std::vector<uint32_t> sums(query_count * table_count * kPointsTogether, 123);
  std::vector<uint32_t*> places;
  for (size_t i = 0; i < query_count * table_count; ++i) {
    places.push_back(sums.data() + i * kPointsTogether);
  }
  batch.sum({table_pointers.data(), keys.pointers.data(), arranged[0].bytes, table_count,
             query_count, point, scratch[0].bytes, places.data()});
  for (size_t q = 0; q < query_count; ++q) {
    for (size_t t = 0; t < table_count; ++t) {
      for (size_t i = 0; i < kPointsTogether; ++i) {
        ASSERT_EQ(places[q * table_count + t][i], expected_sum(tables[t], keys.plain[q], point, i))
            << "query " << q << ", table " << t << ", point " << i;
      }
    }
  }
}

TEST_P(RingKernelTest, SumGroups) {
  std::mt19937_64 generator(3);
  const auto word = [&] { return static_cast<uint32_t>(generator() % kPackingModulus); };
  for (const size_t query_count :
       {1u, 2u, 3u, 4u, 5u, 6u, 7u, 8u, 9u, 10u, 11u, 35u, 37u, 38u, 42u}) {
    for (const size_t point : {0u, 16u, 1008u, 1024u, 2032u}) {
      expect_sums(GetParam(), query_count, point, word);
    }
  }
}

TEST_P(RingKernelTest, SumTheLargestNumbers) {
  for (const size_t query_count : {1u, 2u, 3u, 4u, 5u, 6u, 9u}) {
    expect_sums(GetParam(), query_count, 512, [] { return kPackingModulus - 1; });
  }
}

TEST_P(RingBatchKernelTest, SumBatches) {
  std::mt19937_64 generator(4);
  const auto word = [&] { return static_cast<uint32_t>(generator() % kPackingModulus); };
  for (const size_t point : {0u, 16u, 512u, 1008u, 1024u, 2032u}) {
    expect_batch_sums(*GetParam().batch, 1 + point % 3, 3, point, word);
  }
  for (const size_t table_count : {1u, 2u, 9u, 15u, 16u}) {
    expect_batch_sums(*GetParam().batch, table_count, 2, 1008, word);
  }
  for (const size_t query_count : {1u, 15u, 16u, 17u, 33u}) {
    expect_batch_sums(*GetParam().batch, 2, query_count, 2032, word);
  }
}

// Every sum of bytes is as large as it can be.
TEST_P(RingBatchKernelTest, SumTheLargestNumbersOfBatches) {
  expect_batch_sums(*GetParam().batch, 16, 16, 512, [] { return kPackingModulus - 1; });
  expect_batch_sums(*GetParam().batch, 2, 2, 512, [] { return 0xfeffffffu; });
}

INSTANTIATE_TEST_SUITE_P(All, RingKernelTest, ::testing::ValuesIn(ring_kernels()), name_of_kernel);
GTEST_ALLOW_UNINSTANTIATED_PARAMETERIZED_TEST(RingBatchKernelTest);
INSTANTIATE_TEST_SUITE_P(All, RingBatchKernelTest, ::testing::ValuesIn(ring_kernels_for_batches()),
                         name_of_kernel);

TEST(RingKernels, EndWithThePortableOne) { EXPECT_EQ(ring_kernels().back().name, "portable"); }

}  // namespace
}  // namespace blindfuse
