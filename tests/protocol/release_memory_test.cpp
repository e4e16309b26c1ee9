#include "src/base/release_memory.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

namespace blindfuse {
namespace {

TEST(ReleaseMemory, OfStringsAndVectors) {
  std::string text(1000, 'x');
  release_memory(text);
  EXPECT_EQ(text, "");
  EXPECT_EQ(text.capacity(), std::string().capacity());
  std::vector<int> numbers(1000);
  release_memory(numbers);
  EXPECT_TRUE(numbers.empty());
  EXPECT_EQ(numbers.capacity(), 0u);
}

}  // namespace
}  // namespace blindfuse
