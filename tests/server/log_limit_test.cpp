#include "host/server/http/connection.h"

#include <gtest/gtest.h>

namespace blindfuse::http {
namespace {

TEST(LogLimit, CountsWhatIsLeftOut) {
  using std::chrono::seconds;
  LogLimit limit(seconds(60));
  const Clock::time_point start{};
  EXPECT_EQ(limit.count(start), 1u);
  EXPECT_EQ(limit.count(start), std::nullopt);
  EXPECT_EQ(limit.count(start + seconds(59)), std::nullopt);
  EXPECT_EQ(limit.count(start + seconds(60)), 3u);
  EXPECT_EQ(limit.count(start + seconds(119)), std::nullopt);
  EXPECT_EQ(limit.count(start + seconds(600)), 2u);
}

}  // namespace
}  // namespace blindfuse::http
