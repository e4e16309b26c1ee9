// The three kinds of error, decided once for the whole project.
//
//   BadInput       what a person or a peer gave us is wrong: a file, a flag, a request. Exit status
//   1, or HTTP 400. EngineTrouble  the machine failed us: a device, memory, a disk. Exit status 1,
//   or HTTP 503. invariant()    we are wrong ourselves: abort, at once, with the place. Never used
//   on anything that came
//                  over the network or from a file.
#pragma once

#include <stdexcept>
#include <string>

namespace blindfuse {

// The message is one line: what is wrong, where, and what would be right.
class BadInput : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

class EngineTrouble : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

[[noreturn]] void abort_broken_invariant(const char* what, const char* file, int line);

// Prints the place and `what`, and aborts, when `holds` is false. On in every build type.
inline void invariant(bool holds, const char* what, const char* file = __builtin_FILE(),
                      int line = __builtin_LINE()) {
  if (!holds) abort_broken_invariant(what, file, line);
}

}  // namespace blindfuse
