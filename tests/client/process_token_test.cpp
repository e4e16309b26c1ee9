#include "tests/client/copied_process.h"

#include <gtest/gtest.h>
#include <sys/mman.h>

#include <cstdio>
#include <cstring>
#include <thread>
#include <utility>

#include "src/system/process_token.h"

namespace {

pid_t fixed_number = 0;  // what getpid() gives; 0: the process's own

}  // namespace

// In place of libc's, for this program.
extern "C" pid_t getpid() noexcept {
  return fixed_number != 0 ? fixed_number : static_cast<pid_t>(syscall(SYS_getpid));
}

namespace blindfuse {
namespace {

pid_t raw_clone(int flags) {
  return static_cast<pid_t>(
      syscall(SYS_clone, SIGCHLD | flags, nullptr, nullptr, nullptr, nullptr));
}

bool write_all(int file, const std::vector<uint8_t>& bytes) {
  size_t at = 0;
  while (at < bytes.size()) {
    const ssize_t count = write(file, bytes.data() + at, bytes.size() - at);
    if (count <= 0) return false;
    at += static_cast<size_t>(count);
  }
  return true;
}

std::vector<uint8_t> bytes_from(int file) {
  std::vector<uint8_t> bytes, piece(65'536);
  for (ssize_t count; (count = read(file, piece.data(), piece.size())) > 0;) {
    bytes.insert(bytes.end(), piece.begin(), piece.begin() + count);
  }
  return bytes;
}

bool ends_well(pid_t child) {
  int status = -1;
  return waitpid(child, &status, 0) == child && WIFEXITED(status) && WEXITSTATUS(status) == 0;
}

}  // namespace

std::string name_of(Copying how) {
  switch (how) {
    case Copying::kFork:
      return "Fork";
    case Copying::kClone:
      return "Clone";
    case Copying::kSameNumber:
      return "SameNumber";
    case Copying::kPidNamespace:
      return "PidNamespace";
  }
  return "";
}

pid_t copy_process(Copying how) {
  std::fflush(nullptr);
  switch (how) {
    case Copying::kFork:
      return fork();
    case Copying::kClone:
      return raw_clone(0);
    case Copying::kSameNumber: {
      const pid_t before = std::exchange(fixed_number, getpid());
      const pid_t child = raw_clone(0);
      if (child != 0) fixed_number = before;
      return child;
    }
    case Copying::kPidNamespace: {
      const pid_t child = raw_clone(CLONE_NEWPID);
      return child >= 0 || errno != EPERM ? child : raw_clone(CLONE_NEWUSER | CLONE_NEWPID);
    }
  }
  return -1;
}

std::optional<std::vector<uint8_t>> in_copy(Copying how,
                                            const std::function<std::vector<uint8_t>()>& work) {
  int ends[2];
  if (pipe(ends) != 0) return std::nullopt;
  const pid_t child = copy_process(how);
  if (child == 0) {
    try {
      _exit(write_all(ends[1], work()) ? 0 : 1);
    } catch (...) {
      _exit(2);
    }
  }
  close(ends[1]);
  std::vector<uint8_t> bytes = bytes_from(ends[0]);
  close(ends[0]);
  if (child < 0 || !ends_well(child)) return std::nullopt;
  return bytes;
}

std::string why_not(Copying how) {
#ifdef __SANITIZE_THREAD__
  if (how != Copying::kFork) return "ThreadSanitizer follows no child but that of fork()";
#endif
  const pid_t child = copy_process(how);
  if (child == 0) _exit(0);
  if (child < 0) return name_of(how) + " is not permitted here: " + std::strerror(errno);
  return ends_well(child) ? "" : name_of(how) + " does not work here";
}

namespace {

std::vector<uint8_t> own_number() {
  const pid_t number = getpid();
  std::vector<uint8_t> bytes(sizeof(number));
  std::memcpy(bytes.data(), &number, sizeof(number));
  return bytes;
}

// The numbers of a copy and of a copy of that are what the tests of forked processes rest on.
TEST(CopiedProcess, HasTheNumberOfTheProcessThatMadeItWhereItShould) {
  for (const Copying how : kEveryCopying) {
    if (!why_not(how).empty()) continue;
    const auto numbers = in_copy(how, [how] {
      std::vector<uint8_t> both = own_number();
      const auto copys = in_copy(how, own_number);
      if (copys) both.insert(both.end(), copys->begin(), copys->end());
      return both;
    });
    ASSERT_TRUE(numbers) << name_of(how);
    ASSERT_EQ(numbers->size(), 2 * sizeof(pid_t)) << name_of(how);
    const bool are_same =
        std::memcmp(numbers->data(), numbers->data() + sizeof(pid_t), sizeof(pid_t)) == 0;
    EXPECT_EQ(are_same, how == Copying::kSameNumber || how == Copying::kPidNamespace)
        << name_of(how);
  }
}

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
