#include "client/key_copies.h"

#include <gtest/gtest.h>

#include <string>
#include <type_traits>
#include <utility>

namespace blindfuse {
namespace {

// What memory held when it was given back, all of it.
std::string freed;  // NOLINT

template <class T>
struct WatchingAllocator {
  using value_type = T;
  WatchingAllocator() = default;
  template <class Other>
  WatchingAllocator(const WatchingAllocator<Other>&) {}  // NOLINT(google-explicit-constructor)
  T* allocate(size_t count) { return std::allocator<T>().allocate(count); }
  void deallocate(T* memory, size_t count) {
    freed.append(reinterpret_cast<const char*>(memory), count * sizeof(T));
    std::allocator<T>().deallocate(memory, count);
  }
  bool operator==(const WatchingAllocator&) const { return true; }
};

using WatchedCopies = BasicKeyCopies<WatchingAllocator<char>>;

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

TEST_F(KeyCopiesTest, AreWipedWhenTheyWereAppended) {
  {
    WatchedCopies one(1);
    one.add(long_key_);
    WatchedCopies all(1);
    all.append(one.span());
    EXPECT_EQ(all.span().front(), one.span().front());
  }
  EXPECT_GE(freed.size(), 2 * long_key_.size());
  EXPECT_FALSE(was_freed(long_key_.substr(0, 8)));
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
  EXPECT_DEATH(copies.add("two"), "there is room for the key");
}

}  // namespace
}  // namespace blindfuse
