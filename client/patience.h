// When to give up waiting for a server, and why a connection was given up.
#pragma once

#include <functional>

namespace blindfuse {

inline constexpr int kWaitSliceMs = 50;

struct Patience {
  std::function<bool()> keep_waiting;  // asked every kWaitSliceMs while nothing comes; may be empty
  bool told_to_stop = false;
  bool timed_out = false;
  bool head_too_long = false;
};

}  // namespace blindfuse
