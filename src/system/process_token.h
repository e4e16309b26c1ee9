// Whether this process is still the one that made something, or a forked copy of it.
#pragma once

#include <cstdint>

namespace blindfuse {

// A random number of one process, which its children do not inherit: each draws its own. Unlike a
// process ID, it is never that of another process: a PID namespace has numbers of its own, and
// numbers are used again.
//
// ForkSentinel says which children are recognized. The copies of a process that a snapshot of a
// whole machine restores are not: they have the same memory.
class ProcessToken {
 public:
  // Of the calling process. Any thread; takes no locks, so that a child of a process with other
  // threads may call it. Throws ResourceError when the system has no random bytes or no memory.
  static ProcessToken current();

  // False in a child that has a copy of it.
  bool is_current() const noexcept;

 private:
  explicit ProcessToken(uint64_t value) : value_(value) {}

  uint64_t value_;  // not 0
};

}  // namespace blindfuse
