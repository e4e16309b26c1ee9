#include "host/system/memory.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace blindfuse {
namespace {

TEST(ZeroedWords, AreZero) { EXPECT_EQ(zeroed_words("test", 3), (std::vector<uint32_t>{0, 0, 0})); }

void expect_refused(uint64_t count) {
  try {
    zeroed_words("sums", count);
    ADD_FAILURE();
  } catch (const ResourceError& error) {
    EXPECT_THAT(error.what(), testing::HasSubstr("no memory for the sums, "));
  }
}

TEST(ZeroedWords, SayWhatThereIsNoMemoryFor) {
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
  GTEST_SKIP() << "sanitizers end the process";
#endif
  expect_refused(uint64_t{1} << 60);
}

TEST(ZeroedWords, SayWhatNoVectorCanHold) { expect_refused(uint64_t{1} << 63); }

}  // namespace
}  // namespace blindfuse
