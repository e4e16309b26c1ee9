// The kinds of error, decided once for the whole project.
//
//   BadInput       What a person or a peer gave us is wrong: a file, a request. Exit status 1, or
//                  HTTP 400.
//   Misuse         The command line itself is wrong. Exit status 2.
//   EngineTrouble  The machine failed us: a device, memory, a disk. Exit status 1, or HTTP 503.
//   EngineLost     The same, for good: the program ends.
//   invariant()    We are wrong ourselves: abort, at once, with the place. Never used on anything
//                  that came over the network or from a file.
#pragma once

#include <blindfuse/error_kinds.h>

namespace blindfuse {

class Misuse : public BadInput {
 public:
  using BadInput::BadInput;
};

// The engine's device is gone, or what it held: only a new process can go on.
class EngineLost : public EngineTrouble {
 public:
  using EngineTrouble::EngineTrouble;
};

[[noreturn]] void abort_broken_invariant(const char* what, const char* file, int line);

// Prints the place and `what`, and aborts, when `holds` is false. On in every build type.
inline void invariant(bool holds, const char* what, const char* file = __builtin_FILE(),
                      int line = __builtin_LINE()) {
  if (!holds) abort_broken_invariant(what, file, line);
}

}  // namespace blindfuse
