#include "src/arithmetic/bit_sequence.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <memory>
#include <set>
#include <span>
#include <vector>

#include "tests/reference_pir.h"
#include "tests/support.h"
#include "tests/vectors.h"

namespace blindfuse {
namespace {

using support::SeededRandom;
using vectors::from_hex;
using vectors::json;

using Bytes = std::vector<uint8_t>;
using Words = std::vector<uint32_t>;

Bytes pack(const Words& words, uint32_t bits) {
  Bytes packed(bit_sequence_bytes(words.size(), bits), 0xaa);
  write_bit_sequence(words, bits, packed);
  return packed;
}

// From a copy that ends where it should, so that AddressSanitizer sees a read beyond the end.
Words unpack(const Bytes& packed, uint32_t bits, uint64_t first, size_t count) {
  const auto exact = std::make_unique<uint8_t[]>(packed.size());
  std::copy(packed.begin(), packed.end(), exact.get());
  Words words(count, 0xaaaaaaaa);
  read_bit_sequence({exact.get(), packed.size()}, bits, first, words);
  return words;
}

TEST(BitSequence, AgreesWithTheVectors) {
  const json file = vectors::read_vectors("bit_packing.json");
  std::set<uint32_t> all_bits;
  for (const json& c : file.at("cases")) {
    const uint32_t bits = c.at("bits");
    SCOPED_TRACE(bits);
    all_bits.insert(bits);
    const Words words = c.at("words");
    Words numbers;
    for (const uint32_t word : words) numbers.push_back(round_word(word, bits));
    EXPECT_EQ(json(numbers), c.at("numbers"));
    const Bytes packed = pack(words, bits);
    EXPECT_EQ(json(vectors::to_hex(packed)), c.at("packed"));
    EXPECT_TRUE(is_bit_sequence(packed, words.size(), bits));
    EXPECT_EQ(json(unpack(packed, bits, 0, words.size())), c.at("restored"));
  }
  EXPECT_EQ(all_bits.size(), 32u);
  for (const json& bad : file.at("bad")) {
    EXPECT_FALSE(is_bit_sequence(from_hex(bad.at("packed")), bad.at("count"), bad.at("bits")))
        << bad;
  }
}

// At and next to the ties near zero, near the middle and where the number wraps, for all bits.
TEST(RoundWord, AgreesWithTheReferenceAroundEveryTie) {
  SeededRandom random(15);
  for (uint32_t bits = 1; bits <= 32; ++bits) {
    const uint32_t half = bits == 32 ? 0 : 1u << (31 - bits);
    for (const uint32_t base : {0u, 1u << (bits - 1), random.u32()}) {
      for (uint32_t i = 0; i < 64; ++i) {
        const uint32_t tie = restore_word(base + i - 32, bits) + half;
        for (const uint32_t word : {tie - 1, tie, tie + 1}) {
          ASSERT_EQ(round_word(word, bits), reference_pir::round_word(word, bits))
              << word << " to " << bits;
        }
      }
    }
    for (int i = 0; i < 1000; ++i) {
      const uint32_t word = random.u32();
      ASSERT_EQ(round_word(word, bits), reference_pir::round_word(word, bits));
    }
  }
}

TEST(BitSequence, AgreesWithTheReferenceForEveryCount) {
  SeededRandom random(17);
  for (uint32_t bits = 1; bits <= 32; ++bits) {
    for (size_t count = 0; count <= 70; ++count) {
      const Words words = random.words(count);
      const Bytes packed = pack(words, bits);
      ASSERT_EQ(packed.size(), (count * bits + 7) / 8);
      ASSERT_EQ(packed, reference_pir::round_and_pack(words, bits)) << count << " of " << bits;
      ASSERT_TRUE(is_bit_sequence(packed, count, bits));
      ASSERT_EQ(unpack(packed, bits, 0, count),
                reference_pir::unpack_and_restore(packed, bits, count));
    }
  }
}

TEST(BitSequence, UnpacksFromAnyWordOn) {
  SeededRandom random(18);
  for (uint32_t bits = 1; bits <= 32; ++bits) {
    constexpr size_t kCount = 67;
    const Bytes packed = pack(random.words(kCount), bits);
    const Words all = unpack(packed, bits, 0, kCount);
    for (size_t first = 0; first <= kCount; ++first) {
      const size_t count = random.below(kCount - first + 1);
      for (const size_t some : {count, kCount - first}) {
        const Words expected(all.begin() + static_cast<ptrdiff_t>(first),
                             all.begin() + static_cast<ptrdiff_t>(first + some));
        ASSERT_EQ(unpack(packed, bits, first, some), expected) << first << ", " << bits << " bits";
      }
    }
  }
}

// Beyond 2^32 bits, where 32-bit arithmetic would wrap.
TEST(BitSequence, CountsBitsWith64) {
  EXPECT_EQ(bit_sequence_bytes(uint64_t{1} << 31, 28), uint64_t{7} << 30);
  EXPECT_EQ(bit_sequence_bytes((uint64_t{1} << 32) + 1, 9), ((uint64_t{9} << 32) + 9 + 7) / 8);
  EXPECT_FALSE(is_bit_sequence(Bytes(4), (uint64_t{1} << 32) + 1, 32));
}

TEST(IsPacked, WantsTheExactLengthAndZerosInUnusedBits) {
  SeededRandom random(19);
  for (uint32_t bits = 1; bits <= 32; ++bits) {
    for (size_t count = 0; count <= 20; ++count) {
      Bytes packed = pack(random.words(count), bits);
      const size_t used = count * bits % 8;
      for (size_t bit = used; used != 0 && bit < 8; ++bit) {
        packed.back() ^= static_cast<uint8_t>(1u << bit);
        EXPECT_FALSE(is_bit_sequence(packed, count, bits)) << count << " of " << bits;
        packed.back() ^= static_cast<uint8_t>(1u << bit);
      }
      for (size_t bit = 0; bit < (used == 0 ? 8 : used) && !packed.empty(); ++bit) {
        packed.back() ^= static_cast<uint8_t>(1u << bit);
        EXPECT_TRUE(is_bit_sequence(packed, count, bits)) << "a used bit counts as unused";
      }
      Bytes longer = packed;
      longer.push_back(0);
      EXPECT_FALSE(is_bit_sequence(longer, count, bits));
      if (packed.empty()) continue;
      EXPECT_FALSE(is_bit_sequence(std::span(packed).first(packed.size() - 1), count, bits));
    }
  }
}

}  // namespace
}  // namespace blindfuse
