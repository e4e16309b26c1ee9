#include "src/system/process_token.h"

#include <gtest/gtest.h>
#include <sys/mman.h>

#include <cerrno>
#include <thread>
#include <vector>

#include "tests/client/copied_process.h"

namespace blindfuse {
namespace {

using Flags = std::vector<uint8_t>;

class ProcessTokenTest : public testing::TestWithParam<Copying> {
 protected:
  void SetUp() override {
    if (const std::string reason = why_not(GetParam()); !reason.empty()) GTEST_SKIP() << reason;
  }
};

INSTANTIATE_TEST_SUITE_P(, ProcessTokenTest, testing::ValuesIn(kEveryCopying),
                         [](const auto& of) { return name_of(of.param); });

TEST_P(ProcessTokenTest, IsOfOneProcess) {
  const auto outcome = in_copy(GetParam(), [] {
    const ProcessToken token = ProcessToken::current();
    const auto childs = in_copy(GetParam(), [&] {
      // Before and after the child draws its own.
      Flags child = {token.is_current()};
      const ProcessToken own = ProcessToken::current();
      child.insert(child.end(), {token.is_current(), own.is_current()});
      const auto grandchilds = in_copy(GetParam(), [&] {
        (void)ProcessToken::current();
        return Flags{token.is_current(), own.is_current()};
      });
      child.insert(child.end(), grandchilds->begin(), grandchilds->end());
      child.push_back(own.is_current());
      return child;
    });
    Flags all = childs.value();
    all.push_back(token.is_current());
    return all;
  });
  EXPECT_EQ(outcome, (Flags{false, false, true, false, false, true, true}));
}

TEST(ProcessToken, IsTheSameForAllThreads) {
  const ProcessToken token = ProcessToken::current();
  std::thread([&] {
    EXPECT_TRUE(token.is_current());
    EXPECT_TRUE(ProcessToken::current().is_current());
  }).join();
  EXPECT_TRUE(token.is_current());
}

int refuse(void*, size_t, int) {
  errno = EINVAL;
  return -1;
}
int accept_and_ignore(void*, size_t, int) { return 0; }

// The word in a copy of this process, where it is set to 7 before.
uint64_t word_in_copy(const ForkSentinel& sentinel, Copying how) {
  const auto word = in_copy(how, [&] {
    sentinel.word() = 7;
    return *in_copy(how, [&] { return Flags{static_cast<uint8_t>(sentinel.word())}; });
  });
  return word.value().at(0);
}

TEST(ForkSentinel, IsWipedByTheKernelInEveryCopy) {
  const ForkSentinel sentinel(madvise);
  if (!sentinel.is_wiped_by_kernel()) GTEST_SKIP() << "this kernel has no MADV_WIPEONFORK";
  EXPECT_EQ(sentinel.word(), 0u);
  for (const Copying how : kEveryCopying) {
    if (!why_not(how).empty()) continue;
    EXPECT_EQ(word_in_copy(sentinel, how), 0u) << name_of(how);
  }
}

// As old kernels do, and emulators of them.
TEST(ForkSentinel, IsClearedByAForkHandlerWhereTheKernelDoesNotWipe) {
  for (const ForkSentinel::Advise advise : {refuse, accept_and_ignore}) {
    const ForkSentinel sentinel(advise);
    EXPECT_FALSE(sentinel.is_wiped_by_kernel());
    EXPECT_EQ(word_in_copy(sentinel, Copying::kFork), 0u);
  }
}

// What the handler cannot do, as docs/clients/behaviour.md says.
TEST(ForkSentinel, IsLeftAsItIsInCopiesThatCallNoForkHandlerWhereTheKernelDoesNotWipe) {
  if (const std::string reason = why_not(Copying::kClone); !reason.empty()) GTEST_SKIP() << reason;
  EXPECT_EQ(word_in_copy(ForkSentinel(refuse), Copying::kClone), 7u);
}

}  // namespace
}  // namespace blindfuse
