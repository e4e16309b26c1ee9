#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <map>
#include <numeric>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include "client/secret.h"
#include "client/secret_product.h"
#include "tests/client/seeded_random.h"

namespace blindfuse {
namespace {

// An allocator that looks at memory when it is given back.
struct Watched {
  static inline size_t freed_bytes = 0;
  static inline size_t freed_nonzero_bytes = 0;
};

template <class T>
struct WatchingAllocator {
  using value_type = T;
  T* allocate(size_t count) { return std::allocator<T>().allocate(count); }
  void deallocate(T* memory, size_t count) {
    const auto* bytes = reinterpret_cast<const unsigned char*>(memory);
    Watched::freed_bytes += count * sizeof(T);
    Watched::freed_nonzero_bytes += static_cast<size_t>(std::count_if(
        bytes, bytes + count * sizeof(T), [](unsigned char byte) { return byte != 0; }));
    std::allocator<T>().deallocate(memory, count);
  }
};

using WatchedBuffer = SecretBuffer<uint32_t, WatchingAllocator<uint32_t>>;

class SecretBufferTest : public testing::Test {
 protected:
  void SetUp() override { Watched::freed_bytes = Watched::freed_nonzero_bytes = 0; }

  static WatchedBuffer filled(size_t size) {
    WatchedBuffer buffer(size);
    std::fill(buffer.span().begin(), buffer.span().end(), 0xdeadbeef);
    return buffer;
  }
};

TEST_F(SecretBufferTest, IsWipedWhenDestroyed) {
  { const WatchedBuffer buffer = filled(1000); }
  EXPECT_EQ(Watched::freed_bytes, 4000u);
  EXPECT_EQ(Watched::freed_nonzero_bytes, 0u);
}

TEST_F(SecretBufferTest, IsWipedWhenAnotherIsMovedIn) {
  WatchedBuffer buffer = filled(1000);
  buffer = filled(10);
  EXPECT_EQ(Watched::freed_bytes, 4000u);
  EXPECT_EQ(Watched::freed_nonzero_bytes, 0u);
  EXPECT_EQ(buffer.size(), 10u);
}

TEST_F(SecretBufferTest, MovesLeaveNothingBehind) {
  WatchedBuffer from = filled(7);
  const uint32_t* const memory = from.span().data();
  WatchedBuffer to = std::move(from);
  EXPECT_EQ(to.span().data(), memory);
  EXPECT_TRUE(from.empty());  // NOLINT(bugprone-use-after-move): the contract says so
  EXPECT_TRUE(from.span().empty());
  EXPECT_EQ(Watched::freed_bytes, 0u);
}

TEST_F(SecretBufferTest, StartsWithZeros) {
  const SecretBuffer<uint32_t> buffer(100);
  EXPECT_TRUE(std::all_of(buffer.span().begin(), buffer.span().end(),
                          [](uint32_t word) { return word == 0; }));
}

TEST(SecretBufferTypes, DoNotCopy) {
  static_assert(!std::is_copy_constructible_v<SecretBuffer<uint32_t>>);
  static_assert(!std::is_copy_assignable_v<SecretBuffer<uint32_t>>);
  static_assert(std::is_nothrow_move_constructible_v<SecretBuffer<uint32_t>>);
}

TEST(SampleTernary, TakesFiveNumbersFromAByteBelow243) {
  // 5 = 2 + 1 * 3, the digits 2 1 0 0 0; 243 and more are thrown away; 242 = 22222; 0 = 00000.
  const std::vector<uint8_t> given = {243, 5, 255, 242, 0};
  size_t at = 0;
  std::vector<uint32_t> words(15);
  sample_ternary(
      [&](std::span<uint8_t> bytes) {
        for (uint8_t& byte : bytes) byte = given[at++ % given.size()];
      },
      words);
  constexpr uint32_t kMinus = 0xffffffff;
  EXPECT_EQ(words, (std::vector<uint32_t>{1, 0, kMinus, kMinus, kMinus, 1, 1, 1, 1, 1, kMinus,
                                          kMinus, kMinus, kMinus, kMinus}));
}

TEST(SampleTernary, FillsAnySizeAndAsksForBlocksOfAtMost64KiB) {
  for (const size_t size : {0, 1, 4, 5, 6, 1774, 400'000}) {
    std::vector<uint32_t> words(size, 7);
    sample_ternary(
        [](std::span<uint8_t> bytes) {
          EXPECT_LE(bytes.size(), 65'536u);
          std::fill(bytes.begin(), bytes.end(), uint8_t{121});  // 11111 in base 3
        },
        words);
    EXPECT_TRUE(std::all_of(words.begin(), words.end(), [](uint32_t word) { return word == 0; }))
        << size;
  }
}

TEST(SampleTernary, IsUniformOverNumbersAndPairs) {
  for (const uint64_t seed : {1, 2, 3}) {
    std::vector<uint32_t> words(3'000'000);
    sample_ternary(seeded_random(seed), words);
    std::vector<uint64_t> singles(3), pairs(9);
    for (size_t i = 0; i < words.size(); ++i) {
      ASSERT_LE(words[i] + 1, 2u);
      ++singles[words[i] + 1];
      if (i > 0) ++pairs[3 * (words[i - 1] + 1) + words[i] + 1];
    }
    // Exceeded with probability 1e-6 for 2 and for 8 degrees of freedom.
    EXPECT_LT(chi_square(singles), 27.6) << "seed " << seed;
    EXPECT_LT(chi_square(pairs), 42.7) << "seed " << seed;
  }
}

TEST(SampleErrors, AreTernaryWithABoundOfOne) {
  std::vector<uint32_t> errors(1000), ternary(1000);
  sample_errors(seeded_random(4), 1, errors);
  sample_ternary(seeded_random(4), ternary);
  EXPECT_EQ(errors, ternary);
}

TEST(SampleErrors, AreATernaryNumberPlusThreeTimesAnotherWithABoundOfFour) {
  // 5 is the digits 2 1 0 0 0, less one each; 121 is 1 1 1 1 1; 0 is 0 0 0 0 0. Each request for
  // bytes gets one of these alone.
  const std::vector<uint8_t> given = {5, 0};
  size_t at = 0;
  std::vector<uint32_t> words(5);
  sample_errors(
      [&](std::span<uint8_t> bytes) { std::fill(bytes.begin(), bytes.end(), given.at(at++)); }, 4,
      words);
  const auto minus = [](uint32_t number) { return uint32_t{0} - number; };
  EXPECT_EQ(words, (std::vector<uint32_t>{minus(2), minus(3), minus(4), minus(4), minus(4)}));
}

TEST(SampleErrors, AreUniformWithABoundOfFour) {
  for (const size_t size : {size_t{1}, size_t{16'384}, size_t{16'385}, size_t{3'000'000}}) {
    std::vector<uint32_t> words(size, 99);
    sample_errors(seeded_random(7), 4, words);
    std::vector<uint64_t> singles(9);
    for (const uint32_t word : words) {
      ASSERT_LE(word + 4, 8u);
      ++singles[word + 4];
    }
    // Exceeded with probability 1e-6 for 8 degrees of freedom.
    if (size > 10'000) {
      EXPECT_LT(chi_square(singles), 42.7) << size;
    }
  }
}

TEST(SampleTernary, PassesOnWhatItsSourceThrows) {
  std::vector<uint32_t> words(10);
  EXPECT_THROW(sample_ternary([](std::span<uint8_t>) { throw std::runtime_error("dry"); }, words),
               std::runtime_error);
}

// What memory held when it was given back, all of it.
std::string freed;  // NOLINT

template <class T>
struct NotingAllocator {
  using value_type = T;
  NotingAllocator() = default;
  template <class Other>
  NotingAllocator(const NotingAllocator<Other>&) {}  // NOLINT(google-explicit-constructor)
  T* allocate(size_t count) { return std::allocator<T>().allocate(count); }
  void deallocate(T* memory, size_t count) {
    freed.append(reinterpret_cast<const char*>(memory), count * sizeof(T));
    std::allocator<T>().deallocate(memory, count);
  }
  bool operator==(const NotingAllocator&) const { return true; }
};

using WatchedCopies = BasicKeyCopies<NotingAllocator<char>>;

bool was_freed(const std::string& text) { return freed.find(text) != std::string::npos; }

class KeyCopiesTest : public testing::Test {
 protected:
  void SetUp() override { freed.clear(); }

  // One lies in memory of its own, the other within the string.
  const std::string long_key_ = "a key that is longer than what a string has room for in itself";
  const std::string short_key_ = "a short key";
};

TEST_F(KeyCopiesTest, AreWipedWhenDestroyed) {
  {
    WatchedCopies copies(2);
    copies.add(long_key_);
    copies.add(short_key_);
  }
  EXPECT_GE(freed.size(), long_key_.size() + 2 * sizeof(WatchedCopies::Text));
  EXPECT_FALSE(was_freed(long_key_.substr(0, 8)));
  EXPECT_FALSE(was_freed(long_key_.substr(long_key_.size() - 8)));
  EXPECT_FALSE(was_freed(short_key_));
}

TEST_F(KeyCopiesTest, MovesLeaveNothingBehind) {
  WatchedCopies from(1);
  from.add(short_key_);
  const auto* const text = from.span().data();
  const WatchedCopies to = std::move(from);
  EXPECT_EQ(to.span().data(), text);
  EXPECT_TRUE(from.span().empty());  // NOLINT(bugprone-use-after-move): the contract says so
  EXPECT_EQ(freed, "");
}

TEST(KeyCopiesTypes, DoNotCopy) {
  static_assert(!std::is_copy_constructible_v<KeyCopies>);
  static_assert(!std::is_copy_assignable_v<KeyCopies>);
  static_assert(!std::is_move_assignable_v<KeyCopies>);
  static_assert(std::is_same_v<KeyCopies::Text, std::string>);
}

TEST(KeyCopiesDeathTest, DoNotGrow) {
  KeyCopies copies(1);
  copies.add("one");
  EXPECT_DEATH_IF_SUPPORTED(copies.add("two"), "there is room for the key");
}

constexpr uint32_t kMinus = 0xffffffff;

std::vector<uint32_t> random_words(const RandomSource& random, size_t size) {
  std::vector<uint32_t> words(size);
  random({reinterpret_cast<uint8_t*>(words.data()), size * 4});
  return words;
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
