#include "client/secret_product.h"

#include <gtest/gtest.h>

#include <numeric>
#include <vector>

#include "tests/client/seeded_random.h"

namespace blindfuse {
namespace {

constexpr uint32_t kMinus = 0xffffffff;

std::vector<uint32_t> random_words(const RandomSource& random, size_t size) {
  std::vector<uint32_t> words(size);
  random({reinterpret_cast<uint8_t*>(words.data()), size * 4});
  return words;
}

TEST(SecretProduct, HandComputed) {
  // Rows of 64 words: 1, 2, 3, ... in the first, 10 in the second, all ones in the third.
  std::vector<uint32_t> panel(3 * 64);
  std::iota(panel.begin(), panel.begin() + 64, 1u);
  std::fill(panel.begin() + 64, panel.begin() + 128, 10u);
  std::fill(panel.begin() + 128, panel.end(), 0xffffffffu);
  const std::vector<uint32_t> secret = {1, kMinus, kMinus};
  std::vector<SecretFactor> factors;
  factors.emplace_back(secret);
  std::vector<uint32_t> product(64, 100);
  uint32_t* const out = product.data();
  add_secret_products(panel, factors, {&out, 1});
  for (uint32_t c = 0; c < 64; ++c) EXPECT_EQ(product[c], 100 + (c + 1) - 10 + 1);
}

TEST(SecretProduct, EqualsTheSumForAnyNumberOfSecrets) {
  const RandomSource random = seeded_random(11);
  for (const size_t dimension : {1, 2, 63, 1774}) {
    const std::vector<uint32_t> panel = random_words(random, dimension * 64);
    for (size_t count = 1; count <= 9; ++count) {
      std::vector<std::vector<uint32_t>> secrets, products, expected;
      std::vector<SecretFactor> factors;
      std::vector<uint32_t*> out;
      for (size_t i = 0; i < count; ++i) {
        secrets.emplace_back(dimension);
        sample_ternary(random, secrets.back());
        factors.emplace_back(secrets.back());
        products.push_back(random_words(random, 64));
        expected.push_back(products.back());
        for (size_t k = 0; k < dimension; ++k) {
          for (size_t c = 0; c < 64; ++c) {
            expected[i][c] += secrets[i][k] * panel[64 * k + c];
          }
        }
      }
      for (std::vector<uint32_t>& product : products) out.push_back(product.data());
      add_secret_products(panel, factors, out);
      EXPECT_EQ(products, expected) << dimension << " x " << count;
    }
  }
}

}  // namespace
}  // namespace blindfuse
