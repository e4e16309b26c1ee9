// The counts of one interval.
#pragma once

#include <cstdint>
#include <map>
#include <string>

#include "bench/load/latency_histogram.h"

namespace blindfuse::load {

struct Window {
  double seconds = 0;
  uint64_t requests = 0;  // answered with 200
  uint64_t lookups = 0;   // keys that were asked for in them
  uint64_t left_out = 0;  // keys that they did not ask for, because no bucket was free
  LatencyHistogram latency;
  LatencyHistogram refused;                // how fast 429s and 503s came back
  std::map<std::string, uint64_t> errors;  // by status; "connection": no answer came
  uint64_t bytes_up = 0;
  uint64_t bytes_down = 0;
  uint64_t reconnects = 0;
  uint64_t resent = 0;    // requests that had been sent before
  uint64_t waiting = 0;   // at its end: arrivals for which no connection was free
  uint64_t given_up = 0;  // arrivals that were too many to wait
  uint64_t epoch_changes = 0;
  double paused_seconds = 0;  // on their account
  double cpu_seconds = 0;     // of the generator
  uint64_t idle_reopened = 0;
  uint64_t slow_answered = 0;
  uint64_t slow_closed = 0;

  double lookups_per_second() const { return per_second(lookups); }
  double requests_per_second() const { return per_second(requests); }
  // Both ways, of all requests; 0 without look-ups.
  double bytes_per_lookup() const {
    const auto bytes = static_cast<double>(bytes_up + bytes_down);
    return lookups > 0 ? bytes / static_cast<double>(lookups) : 0;
  }

  // Adds the counts of another thread in the same interval.
  void merge(const Window& other);

 private:
  double per_second(uint64_t count) const {
    return seconds > 0 ? static_cast<double>(count) / seconds : 0;
  }
};

}  // namespace blindfuse::load
