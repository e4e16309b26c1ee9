#include "host/server/serving/epoch_reloader.h"

#include <gtest/gtest.h>

#include <atomic>
#include <future>

namespace blindfuse {
namespace {

TEST(FileReloader, ReadsAgainForARequestThatComesWhileItReads) {
  std::promise<void> begun, go_on, twice;
  std::atomic<int> count = 0;
  FileReloader files([&] {
    if (++count == 2) return twice.set_value();
    begun.set_value();
    go_on.get_future().wait();
  });
  files.request();
  begun.get_future().wait();
  files.request();
  files.request();
  EXPECT_FALSE(files.stop(std::chrono::milliseconds(0))) << "the read does not return";
  go_on.set_value();
  twice.get_future().wait();
  EXPECT_TRUE(files.stop(std::chrono::minutes(1)));
  EXPECT_EQ(count, 2) << "once for all requests that came meanwhile";
}

TEST(FileReloader, EndsThoughNobodyAsked) {
  const FileReloader files([] { FAIL() << "nobody asked"; });
}

}  // namespace
}  // namespace blindfuse
