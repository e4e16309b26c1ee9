// Tells the process that made an object from a forked copy of it.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>

namespace blindfuse {

// A word of memory that a fork does not copy: zero at first, and zero again in every child process
// that gets a copy of this process's memory.
//
// The kernel wipes the word (MADV_WIPEONFORK, since Linux 4.14) however the child was made: by
// fork(), _Fork() or clone(), in whatever PID namespace. Where the kernel refuses that, a handler
// of pthread_atfork() clears the word: this covers fork(), which calls such handlers, and neither
// _Fork() nor clone(). A child that shares the memory instead of copying it (vfork(), CLONE_VM)
// shares the word.
class ForkSentinel {
 public:
  // madvise(2): 0 when the kernel accepts.
  using Advise = int (*)(void* memory, size_t bytes, int advice);

  // Throws ResourceError when there is no memory for the handler.
  explicit ForkSentinel(Advise advise);
  ~ForkSentinel();
  ForkSentinel(const ForkSentinel&) = delete;
  ForkSentinel& operator=(const ForkSentinel&) = delete;

  // All sentinels that the handler clears share one word.
  std::atomic<uint64_t>& word() const { return *word_; }
  bool is_wiped_by_kernel() const { return page_ != nullptr; }

 private:
  void* page_;  // nullptr where the handler clears the word
  std::atomic<uint64_t>* word_;
};

// A random number of one process, which its children do not inherit: each draws its own. Unlike a
// process ID, it is never that of another process: a PID namespace has numbers of its own, and
// numbers are used again.
//
// ForkSentinel says which children are recognized. The copies of a process that a snapshot of a
// whole machine restores are not: they have the same memory.
class ProcessToken {
 public:
  // The token of the calling process. Any thread; takes no locks, so that a child of a process with
  // other threads may call it. Throws ResourceError when the system has no random bytes or no
  // memory.
  static ProcessToken current();

  // False in a child that has a copy of it.
  bool is_current() const noexcept;

 private:
  explicit ProcessToken(uint64_t value) : value_(value) {}

  uint64_t value_;  // not 0
};

}  // namespace blindfuse
