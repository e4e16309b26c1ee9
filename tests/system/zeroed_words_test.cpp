#include "host/system/zeroed_words.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace blindfuse {
namespace {

TEST(ZeroedWords, AreZero) { EXPECT_EQ(zeroed_words("test", 3), (std::vector<uint32_t>{0, 0, 0})); }

TEST(ZeroedWords, SayWhatThereIsNoMemoryFor) {
  for (const uint64_t count : {uint64_t{1} << 60, uint64_t{1} << 63}) {
    try {
      zeroed_words("sums", count);
      ADD_FAILURE();
    } catch (const ResourceError& error) {
      EXPECT_THAT(error.what(), testing::HasSubstr("no memory for the sums, "));
    }
  }
}

}  // namespace
}  // namespace blindfuse
