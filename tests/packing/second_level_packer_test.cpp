// The second level of packed responses, at full size: what a client decodes, by the definition.
#include "host/cpu/packing/second_level_packer.h"

#include <gtest/gtest.h>

#include <array>
#include <cmath>
#include <cstdint>
#include <random>
#include <vector>

#include "client/ring_query.h"
#include "host/cpu/packing/packing_keys.h"
#include "src/arithmetic/bit_sequence.h"
#include "tests/client/seeded_random.h"
#include "tests/packing/ring_kernel_names.h"
#include "tests/ring/plain_ring.h"

namespace blindfuse {
namespace {

using ring::kDimension;
using ring::kPackingModulus;
using ring::plain::Coefficients;

constexpr unsigned kEntryBits = 11;  // of an entry

class SecondLevelPackerTest : public ::testing::TestWithParam<RingKernel> {
 protected:
  // Entries of this many rows and columns, and a query for one of the rows.
  void ask(size_t rows, size_t columns, size_t row) {
    constexpr size_t kWordsBytes = bit_sequence_bytes(kDimension, 32);
    std::vector<uint8_t> sent(kWordsBytes + ring::kKeyBytes);
    const SecretBuffer<uint32_t> secret =
        std::move(RingQueryMaker(polynomials_, kDimension).make(1, seeded_random(31)).front())
            .encrypt({}, 32, sent)
            .take();
    for (size_t i = 0; i < kDimension; ++i) secret_[i] = ternary(secret[i]);
    const PackingKeys key = PackingKeys::read(std::span(sent).subspan(kWordsBytes));

    const auto transform = ring::portable_ntt(kPackingModulus);
    std::vector<uint32_t> blocks, words;
    for (size_t first = 0; first < rows; first += kDimension) {
      Coefficients a = ring::plain::random_coefficients(40 + first, kPackingModulus);
      const Coefficients product = ring::plain::product(secret_, a, kPackingModulus);
      for (size_t i = 0; i < kDimension && first + i < rows; ++i) {
        const uint64_t error = random_() % 3 + kPackingModulus - 1;
        const uint64_t asked = first + i == row ? (uint64_t{kPackingModulus} >> kEntryBits) : 0;
        words.push_back(static_cast<uint32_t>((product[i] + error + asked) % kPackingModulus));
      }
      transform->forward(a);
      blocks.insert(blocks.end(), a.begin(), a.end());
    }
    const size_t pitch = columns + 5;
    entries_.resize(rows * pitch);
    for (int32_t& entry : entries_) {
      entry = static_cast<int32_t>(random_() >> (64 - kEntryBits)) - (1 << (kEntryBits - 1));
    }
    expected_.assign(entries_.begin() + static_cast<std::ptrdiff_t>(row * pitch),
                     entries_.begin() + static_cast<std::ptrdiff_t>(row * pitch + columns));
    const SecondLevelPacker packer(blocks, 0, polynomials_.key_masks(), GetParam());
    packer.pack({key.words(), words, entries_, pitch, columns, mask_, body_});
  }

  // body - s mask, for column k, as a number of -Q/2 .. Q/2.
  std::vector<int64_t> phases() const {
    const Coefficients product = ring::plain::product(secret_, mask_, kPackingModulus);
    std::vector<int64_t> found;
    for (size_t k = 0; k < expected_.size(); ++k) {
      const int64_t phase = (int64_t{body_[k]} + kPackingModulus - product[k]) % kPackingModulus;
      found.push_back(phase > kPackingModulus / 2 ? phase - kPackingModulus : phase);
    }
    return found;
  }

  std::vector<int32_t> decoded() const {
    std::vector<int32_t> found;
    for (const int64_t phase : phases()) {
      found.push_back(static_cast<int32_t>(std::lround(
          std::ldexp(static_cast<double>(phase), kEntryBits) / double{kPackingModulus})));
      // Half a turn is one number.
      if (found.back() == 1 << (kEntryBits - 1)) found.back() -= 1 << kEntryBits;
    }
    return found;
  }

  static uint32_t ternary(uint32_t word) { return word == UINT32_MAX ? kPackingModulus - 1 : word; }

  const ring::PublicPolynomials polynomials_{ChaChaKey{5}};
  std::mt19937_64 random_{41};
  Coefficients secret_{};
  std::vector<int32_t> entries_, expected_;
  Coefficients mask_{};
  std::array<uint32_t, kPackColumns> body_{};
};

TEST_P(SecondLevelPackerTest, GivesTheEntriesOfTheRowThatIsAskedFor) {
  ask(700, kPackColumns, 699);
  EXPECT_EQ(decoded(), expected_);
}

TEST_P(SecondLevelPackerTest, TakesRowsOfSeveralBlocksAndFewColumns) {
  ask(kDimension + 300, 33, kDimension + 7);
  EXPECT_EQ(decoded(), expected_);
}

INSTANTIATE_TEST_SUITE_P(All, SecondLevelPackerTest, ::testing::ValuesIn(ring_kernels()),
                         name_of_kernel);

}  // namespace
}  // namespace blindfuse
