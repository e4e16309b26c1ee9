// Copies of the test's process, made in every way in which a kernel makes them.
#pragma once

#include <sched.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

namespace blindfuse {

enum class Copying {
  kFork,
  kClone,         // no handler of pthread_atfork() is called
  kSameNumber,    // the same, and getpid() gives the number that it gave before
  kPidNamespace,  // the same: every copy is process 1, in a PID namespace of its own
};

constexpr Copying kEveryCopying[] = {Copying::kFork, Copying::kClone, Copying::kSameNumber,
                                     Copying::kPidNamespace};

std::string name_of(Copying how);

// As fork(): 0 in the child, -1 with errno where it failed.
pid_t copy_process(Copying how);

// What `work` returns in a copy of this process, or nothing when it threw or there is no copy. For
// processes of one thread.
std::optional<std::vector<uint8_t>> in_copy(Copying how,
                                            const std::function<std::vector<uint8_t>()>& work);

// Why there is no copying of this kind here; empty where there is.
std::string why_not(Copying how);

}  // namespace blindfuse
