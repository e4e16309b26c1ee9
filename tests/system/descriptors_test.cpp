#include "host/system/limits.h"

#include <gtest/gtest.h>
#include <sys/resource.h>

namespace blindfuse {
namespace {

class DescriptorLimitTest : public ::testing::Test {
 protected:
  DescriptorLimitTest() { getrlimit(RLIMIT_NOFILE, &before_); }
  ~DescriptorLimitTest() override { setrlimit(RLIMIT_NOFILE, &before_); }
  void set_soft(rlim_t soft) const {
    const rlimit limit{soft, before_.rlim_max};
    ASSERT_EQ(setrlimit(RLIMIT_NOFILE, &limit), 0);
  }
  static rlim_t soft() {
    rlimit limit{};
    getrlimit(RLIMIT_NOFILE, &limit);
    return limit.rlim_cur;
  }

  rlimit before_{};
};

TEST_F(DescriptorLimitTest, IsRaisedToWhatIsWanted) {
  set_soft(100);
  EXPECT_EQ(raise_descriptor_limit(150), 150u);
  EXPECT_EQ(soft(), 150u);
}

TEST_F(DescriptorLimitTest, IsNeverLowered) {
  set_soft(200);
  EXPECT_EQ(raise_descriptor_limit(150), 200u);
  EXPECT_EQ(soft(), 200u);
}

TEST_F(DescriptorLimitTest, EndsAtTheHardLimit) {
  set_soft(100);
  EXPECT_EQ(raise_descriptor_limit(uint64_t{before_.rlim_max} + 1), before_.rlim_max);
  EXPECT_EQ(soft(), before_.rlim_max);
}

}  // namespace
}  // namespace blindfuse
