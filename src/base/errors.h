// The kinds of error of the whole project.
//
//   InputError       A file or a request that a person or a peer gave is wrong. Exit status 1, or
//                    HTTP 400.
//   UsageError       The command line itself is wrong. Exit status 2.
//   ResourceError    A device, memory, a disk or the network failed. Exit status 1, or HTTP 503.
//   DeviceLostError  A device failed for good, or computed a wrong result: the program ends.
//   invariant()      The program is wrong: abort, at once, with the place. Never used on anything
//                    that came over the network or from a file.
#pragma once

#include <blindfuse/error_kinds.h>

namespace blindfuse {

class UsageError : public InputError {
 public:
  using InputError::InputError;
};

// The engine's device or its data is lost, or a result of it is wrong. Only a new process can
// continue.
class DeviceLostError : public ResourceError {
 public:
  using ResourceError::ResourceError;
};

[[noreturn]] void abort_broken_invariant(const char* what, const char* file, int line);

// Prints the place and `what`, and aborts, if `holds` is false. Enabled in every build type.
inline void invariant(bool holds, const char* what, const char* file = __builtin_FILE(),
                      int line = __builtin_LINE()) {
  if (!holds) abort_broken_invariant(what, file, line);
}

}  // namespace blindfuse
