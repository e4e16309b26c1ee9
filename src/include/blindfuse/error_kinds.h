// The two kinds of error that the installed library throws. src/base/errors.h has all kinds.
#pragma once

#include <stdexcept>

// Marks a symbol that a shared library exports.
#define BLINDFUSE_API __attribute__((visibility("default")))

namespace blindfuse {

// Input of a user or a peer is wrong. The message is one line. It says what is wrong, where, and
// what would be right.
class BLINDFUSE_API InputError : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

// A resource that the program needs failed: memory, a disk, a device, a connection.
class BLINDFUSE_API ResourceError : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

}  // namespace blindfuse
