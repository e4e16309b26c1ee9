#include "src/system/threads.h"

#include <gtest/gtest.h>

#include <chrono>
#include <future>
#include <thread>

namespace blindfuse {
namespace {

using namespace std::chrono_literals;

constexpr auto kNothingTakesThis = 1min;

TEST(WaitableThread, IsJoinedWhenItsWorkHasEnded) {
  std::promise<void> go;
  std::thread::id worker;
  WaitableThread thread([&] {
    go.get_future().wait();
    worker = std::this_thread::get_id();
  });
  EXPECT_FALSE(thread.join_within(0ms));
  go.set_value();
  EXPECT_TRUE(thread.join_within(kNothingTakesThis));
  // What the work wrote is there, and later calls find the thread as it is.
  EXPECT_NE(worker, std::thread::id());
  EXPECT_TRUE(thread.join_within(0ms));
}

// What a thread leaves behind is destroyed after its work. Where join_within() only looked at the
// work, it would nearly always be back before that.
TEST(WaitableThread, HasLeftNothingBehindOnceItIsJoined) {
  struct Farewell {
    ~Farewell() {
      for (int i = 0; i < 10'000; ++i) std::this_thread::yield();
      if (has_ended != nullptr) *has_ended = true;
    }
    bool* has_ended = nullptr;
  };
  bool has_ended = false;
  WaitableThread thread([&] {
    thread_local Farewell farewell;
    farewell.has_ended = &has_ended;
  });
  EXPECT_TRUE(thread.join_within(kNothingTakesThis));
  EXPECT_TRUE(has_ended);
}

TEST(WaitableThread, WaitsForItsWorkWhenItIsDestroyed) {
  std::promise<void> go;
  bool has_ended = false;
  {
    const WaitableThread thread([&] {
      go.get_future().wait();
      has_ended = true;
    });
    go.set_value();
  }
  EXPECT_TRUE(has_ended);
}

}  // namespace
}  // namespace blindfuse
