// How long a part of a call took, for the statistics of answers.
#pragma once

#include <chrono>

namespace blindfuse {

inline double seconds_since(std::chrono::steady_clock::time_point start) {
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
}

}  // namespace blindfuse
