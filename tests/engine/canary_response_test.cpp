#include "host/engines/canary_response.h"

#include <gtest/gtest.h>

#include <cstdlib>
#include <memory>
#include <span>
#include <vector>

#include "src/arithmetic/bit_sequence.h"
#include "src/arithmetic/ring/prime_field.h"
#include "tests/client/seeded_random.h"
#include "tests/engine/packed_reference.h"
#include "tests/support.h"

namespace blindfuse {
namespace {

using support::SeededRandom;

constexpr uint32_t kQueryBitsOfCanary = 27, kResponseBitsOfCanary = 14;

// Words and products that have nothing to do with each other: the product is given.
Canary random_canary(SeededRandom& random, uint64_t rows, uint64_t columns) {
  Canary canary;
  for (uint64_t r = 0; r < rows; ++r) {
    canary.words.push_back(random.u32() >> (32 - kQueryBitsOfCanary) << (32 - kQueryBitsOfCanary));
  }
  for (uint64_t c = 0; c < columns; ++c) canary.products.push_back(random.u32());
  return canary;
}

Layout layout_with(const char* params) {
  Layout layout;
  layout.lwe = find_lwe_params(params);
  layout.query_bits = kQueryBitsOfCanary;
  layout.response_bits = kResponseBitsOfCanary;
  return layout;
}

TEST(CanaryResponse, IsTheProductRoundedInTheHintMode) {
  SeededRandom random(150);
  Canary canary = random_canary(random, 192, 37);
  complete_canary(canary, layout_with("lwe-1288"), {}, 1, seeded_random(152));
  uint32_t factor = 1;
  for (const auto& [query, response] : canary.exchanges) {
    std::vector<uint32_t> words(192);
    ASSERT_TRUE(is_bit_sequence(query, 192, kQueryBitsOfCanary));
    read_bit_sequence(query, kQueryBitsOfCanary, 0, words);
    for (uint64_t r = 0; r < 192; ++r) EXPECT_EQ(words[r], factor * canary.words[r]);
    ASSERT_TRUE(is_bit_sequence(response, 37, kResponseBitsOfCanary));
    for (uint64_t c = 0; c < 37; ++c) {
      std::vector<uint32_t> word(1);
      read_bit_sequence(response, kResponseBitsOfCanary, c, word);
      EXPECT_EQ(word[0] >> (32 - kResponseBitsOfCanary),
                round_word(factor * canary.products[c], kResponseBitsOfCanary));
    }
    factor += 2;
  }
  EXPECT_NE(canary.exchanges[0].response, canary.exchanges[1].response);
}

TEST(CanaryResponse, IsPackedUnderTheKeysOfItsQuery) {
  SeededRandom random(151);
  constexpr uint64_t kRowsOfCanary = 2048, kColumnsOfCanary = kPackColumns + 100;
  const std::shared_ptr<uint32_t[]> table(new uint32_t[kTableWords]);
  for (size_t i = 0; i < kTableWords; ++i) {
    table[i] = static_cast<uint32_t>(random.below(ring::kPackingModulus));
  }
  const std::vector<SharedPackingTable> tables(2, table);
  Canary canary = random_canary(random, kRowsOfCanary, kColumnsOfCanary);
  // At first words of which every other one is not below the modulus, and is drawn again.
  const RandomSource others = seeded_random(153);
  size_t draws = 0;  // of keys
  const RandomSource keys_of_bytes = [&](std::span<uint8_t> bytes) {
    others(bytes);
    if (draws++ == 0) {
      for (size_t i = 0; i < bytes.size(); ++i) {
        if (i / 4 % 2 == 0) bytes[i] = 0xff;
      }
    }
  };
  complete_canary(canary, layout_with("ring-2048"), tables, 2, keys_of_bytes);
  const uint64_t words_bytes = bit_sequence_bytes(kRowsOfCanary, kQueryBitsOfCanary);
  const auto& [query, response] = canary.exchanges[0];
  ASSERT_EQ(query.size(), words_bytes + ring::kKeyBytes);
  const auto keys = std::span<const uint8_t>(query).subspan(words_bytes);
  EXPECT_NO_THROW(check_packing_key(keys));
  EXPECT_EQ(draws, 2 + ring::kKeyWords / 2);
  EXPECT_EQ(response,
            support::packed_reference(canary.products, tables, keys, kResponseBitsOfCanary));
}

// The product is that of one bucket: the query has its words twice, before the key.
TEST(CanaryResponse, HasTheSameWordsForEachBucket) {
  SeededRandom random(155);
  constexpr uint64_t kRowsOfCanary = 2048, kColumnsOfCanary = 60;
  const std::shared_ptr<uint32_t[]> table(new uint32_t[kTableWords]);
  for (size_t i = 0; i < kTableWords; ++i) {
    table[i] = static_cast<uint32_t>(random.below(ring::kPackingModulus));
  }
  const std::vector<SharedPackingTable> tables(1, table);
  Canary canary = random_canary(random, kRowsOfCanary, kColumnsOfCanary);
  Layout layout = layout_with("ring-2048");
  layout.batch = BatchCode{.keys_per_request = 2, .bucket_count = 4};
  complete_canary(canary, layout, tables, 1, seeded_random(156));
  EXPECT_EQ(canary.bucket_count, 4u);
  const uint64_t words_bytes = bit_sequence_bytes(4 * kRowsOfCanary, kQueryBitsOfCanary);
  ASSERT_EQ(canary.exchanges[0].query.size(), words_bytes + ring::kKeyBytes);
  const auto query = std::span<const uint8_t>(canary.exchanges[0].query);
  std::vector<uint32_t> words(kRowsOfCanary);
  for (uint64_t bucket = 0; bucket < 4; ++bucket) {
    read_bit_sequence(query.first(words_bytes), kQueryBitsOfCanary, bucket * kRowsOfCanary, words);
    EXPECT_EQ(words, canary.words) << bucket;
  }
  EXPECT_EQ(canary.exchanges[0].response,
            support::packed_reference(canary.products, tables, query.subspan(words_bytes),
                                      kResponseBitsOfCanary));
}

}  // namespace
}  // namespace blindfuse
