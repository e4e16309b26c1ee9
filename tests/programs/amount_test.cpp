#include "src/program/printable.h"

#include <gtest/gtest.h>

namespace blindfuse {
namespace {

TEST(Amount, BytesHaveThreeDigits) {
  EXPECT_EQ(human_bytes(0), "0 B");
  EXPECT_EQ(human_bytes(999), "999 B");
  EXPECT_EQ(human_bytes(1'000), "1.00 kB");
  EXPECT_EQ(human_bytes(12'345), "12.3 kB");
  EXPECT_EQ(human_bytes(123'456'789), "123.5 MB");
  EXPECT_EQ(human_bytes(5'000'000'000'000'000), "5000.0 TB");
}

TEST(Amount, CountsHaveNoUnit) {
  EXPECT_EQ(human_count(999), "999");
  EXPECT_EQ(human_count(27'412'000), "27.4M");
}

TEST(Amount, OneOfAKindIsSingular) {
  EXPECT_EQ(counted(0, "key"), "0 keys");
  EXPECT_EQ(counted(1, "key"), "1 key");
  EXPECT_EQ(counted(2, "look-up"), "2 look-ups");
}

}  // namespace
}  // namespace blindfuse
