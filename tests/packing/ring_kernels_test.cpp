// Every kernel against the portable one and the definitions, bit for bit.
#include "host/packing/ring_kernels.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <functional>
#include <random>

#include "host/packing/packing_keys.h"
#include "src/little_endian.h"
#include "src/packing_table.h"
#include "tests/ring/plain_ring.h"

namespace blindfuse {
namespace {

using ring::kDimension;
using ring::kPackingModulus;
using ring::testing::Coefficients;

class Kernels : public ::testing::TestWithParam<RingKernel> {
 protected:
  // Random, all zeros, all as large as can be, and one number at each end.
  static std::vector<Coefficients> polynomials(uint32_t modulus) {
    std::vector<Coefficients> made;
    for (uint64_t seed = 0; seed < 4; ++seed) {
      made.push_back(ring::testing::random_coefficients(seed, modulus));
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

TEST_P(Kernels, TransformAsThePortableOneDoes) {
  for (const uint32_t modulus : {ring::kPackingModulus, ring::kSecondModulus}) {
    const auto portable = ring::portable_transform(modulus);
    const auto transform = make_transform(GetParam(), modulus);
    for (const Coefficients& each : polynomials(modulus)) {
      Coefficients expected = each;
      portable->forward(expected);
      Coefficients found = each;
      transform->forward(found);
      EXPECT_EQ(found, expected);
      transform->inverse(found);
      EXPECT_EQ(found, each);
    }
  }
}

TEST_P(Kernels, AddProductsAsThePortableOneDoes) {
  for (const uint32_t modulus : {ring::kPackingModulus, ring::kSecondModulus}) {
    const auto portable = ring::portable_transform(modulus);
    const auto transform = make_transform(GetParam(), modulus);
    const std::vector<Coefficients> all = polynomials(modulus);
    for (size_t i = 0; i < all.size(); ++i) {
      Coefficients expected = all[i];
      Coefficients found = all[i];
      for (const Coefficients& other : all) {
        portable->add_products(all[i], other, expected);
        transform->add_products(all[i], other, found);
        EXPECT_EQ(found, expected);
      }
    }
  }
}

// A group of a table and keys, each word by `word`; sums are compared with those of whole numbers.
void expect_sums(const RingKernel& kernel, size_t query_count, size_t point,
                 const std::function<uint32_t()>& word) {
  std::vector<uint32_t> table(kGroupWords);
  std::generate(table.begin(), table.end(), word);
  std::vector<PackingKeys> keys;
  std::vector<std::vector<uint32_t>> plain;
  for (size_t q = 0; q < query_count; ++q) {
    std::vector<uint32_t>& words = plain.emplace_back(ring::kKeyWords);
    std::generate(words.begin(), words.end(), word);
    std::vector<uint8_t> bytes(ring::kKeyBytes);
    for (size_t i = 0; i < ring::kKeyWords; ++i) store_le(bytes.data() + 4 * i, words[i]);
    keys.push_back(PackingKeys::read(bytes));
  }
  std::vector<const uint32_t*> pointers;
  for (const PackingKeys& each : keys) pointers.push_back(each.words());
  std::vector<uint32_t> sums(query_count * kPointsTogether, 123);
  kernel.sum_group({table.data(), pointers.data(), query_count, point, sums.data()});

  for (size_t q = 0; q < query_count; ++q) {
    for (size_t i = 0; i < kPointsTogether; ++i) {
      uint64_t sum = 0;
      for (size_t number = 0; number < kSwitches; ++number) {
        const Switch now = Switch::number(number);
        for (size_t k = 0; k < ring::kDigits; ++k) {
          const auto body = static_cast<size_t>(now.key) * ring::kDigits + k;
          const ring::Polynomial values(plain[q].data() + body * kDimension, kDimension);
          // As ring::apply does it, of one value.
          const size_t half = ((point + i) / ring::kOrbit) ^ static_cast<size_t>(now.to.negative);
          const uint32_t key =
              values[half * ring::kOrbit + (point + i + now.to.power) % ring::kOrbit];
          const uint64_t product =
              static_cast<uint64_t>(table[table_place(0, number, k) + i]) * key;
          sum = (sum + product % kPackingModulus) % kPackingModulus;
        }
      }
      ASSERT_EQ(sums[q * kPointsTogether + i], sum) << q << " " << i;
    }
  }
}

TEST_P(Kernels, SumGroups) {
  std::mt19937_64 generator(3);
  const auto word = [&] { return static_cast<uint32_t>(generator() % kPackingModulus); };
  for (const size_t query_count : {1u, 2u, 3u, 4u, 5u, 8u, 9u}) {
    for (const size_t point : {0u, 16u, 1008u, 1024u, 2032u}) {
      expect_sums(GetParam(), query_count, point, word);
    }
  }
}

TEST_P(Kernels, SumTheLargestNumbers) {
  for (const size_t query_count : {1u, 4u}) {
    expect_sums(GetParam(), query_count, 512, [] { return kPackingModulus - 1; });
  }
}

INSTANTIATE_TEST_SUITE_P(All, Kernels, ::testing::ValuesIn(ring_kernels()),
                         [](const auto& made) { return std::string(made.param.name); });

TEST(RingKernels, EndWithThePortableOne) { EXPECT_EQ(ring_kernels().back().name, "portable"); }

}  // namespace
}  // namespace blindfuse
