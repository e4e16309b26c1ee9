#include <gtest/gtest.h>
#include <signal.h>

#include <chrono>
#include <future>
#include <string>
#include <thread>

#include "host/system/child_process.h"
#include "src/base/errors.h"
#include "src/system/threads.h"

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

using Said = ChildProcess::Said;
constexpr std::chrono::minutes kLong{1};
constexpr std::chrono::milliseconds kNoTime{0};

std::string next_line(ChildProcess& child) {
  const auto line = child.read_line(kLong);
  EXPECT_EQ(line.said, Said::kLine);
  return line.text;
}

ChildProcess shell(const std::string& script) { return {"/bin/sh", {"-c", script}}; }

TEST(ChildProcess, SaysLineAfterLine) {
  ChildProcess child = shell("echo one; printf 'two\\n\\nthree\\nrest'");
  EXPECT_EQ(next_line(child), "one");
  EXPECT_EQ(next_line(child), "two");
  EXPECT_EQ(next_line(child), "");
  EXPECT_EQ(next_line(child), "three");
  EXPECT_EQ(child.read_line(kLong).said, Said::kEnd) << "what is no whole line is none";
  EXPECT_EQ(child.end(kLong), "");
}

TEST(ChildProcess, TellsHowItEnded) {
  EXPECT_EQ(shell("exit 3").end(kLong), "exit status 3");
  EXPECT_EQ(shell("kill -SEGV $$").end(kLong), "signal 11 (Segmentation fault)");
}

// One that hangs says nothing, and goes.
TEST(ChildProcess, IsNotWaitedForWithoutEnd) {
  ChildProcess child = shell("echo begin; exec sleep 10000");
  EXPECT_EQ(next_line(child), "begin");
  EXPECT_EQ(child.read_line(kNoTime).said, Said::kNothing);
  EXPECT_EQ(child.end(kNoTime), "signal 9 (Killed)");
}

TEST(ChildProcess, MayNotSayTooMuch) {
  ChildProcess child = shell("yes | tr -d '\\n'");
  EXPECT_EQ(child.read_line(kLong).said, Said::kEnd);
  ChildProcess longest = shell("head -c 4096 /dev/zero | tr '\\0' x; echo; head -c 4097 /dev/zero");
  EXPECT_EQ(next_line(longest).size(), 4096u);
  EXPECT_EQ(longest.read_line(kLong).said, Said::kEnd);
}

// Nor does it take what was meant for us.
TEST(ChildProcess, HasSignalsAsAShellGivesThemAndReadsNothing) {
  sigset_t term, before;
  sigemptyset(&term);
  sigaddset(&term, SIGTERM);
  pthread_sigmask(SIG_BLOCK, &term, &before);
  const auto ignored = signal(SIGHUP, SIG_IGN);
  ChildProcess child = shell("cat; grep -E 'SigBlk|SigIgn' /proc/self/status");
  EXPECT_EQ(next_line(child), "SigBlk:\t0000000000000000");
  // The C library's own two, above those that have names, are its own affair.
  const std::string ignores = next_line(child);
  EXPECT_EQ(std::stoull(ignores.substr(8), nullptr, 16) & 0x7fffffff, 0u) << ignores;
  ChildProcess killed = shell("kill -TERM $$; sleep 10000");
  EXPECT_EQ(killed.end(kLong), "signal 15 (Terminated)");
  signal(SIGHUP, ignored);
  pthread_sigmask(SIG_SETMASK, &before, nullptr);
}

TEST(ChildProcess, SaysWhatCannotBeStarted) {
  try {
    ChildProcess("/nonexistent/program", {});
    ADD_FAILURE();
  } catch (const ResourceError& error) {
    EXPECT_EQ(std::string(error.what()),
              "cannot start /nonexistent/program: No such file or directory");
  }
}

TEST(ChildProcess, CanBeThisProgram) {
  ChildProcess child(own_program(), {"--gtest_list_tests", "--gtest_filter=ChildProcess.CanBe*"});
  std::string all;
  for (auto line = child.read_line(kLong); line.said == Said::kLine;
       line = child.read_line(kLong)) {
    all += line.text + "\n";
  }
  EXPECT_NE(all.find("CanBeThisProgram"), std::string::npos) << all;
  EXPECT_EQ(child.end(kLong), "");
}

}  // namespace
}  // namespace blindfuse
