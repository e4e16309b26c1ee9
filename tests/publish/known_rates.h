// Rates in round numbers, so that times can be reckoned by hand.
#pragma once

#include "host/engines/core_rates.h"

namespace blindfuse::support {

inline CoreRates known_rates() {
  CoreRates rates;
  rates.scan_alone_bytes_per_second = 10e9;
  rates.scan_batch_multiply_adds_per_second = 80e9;
  rates.pack_alone_bytes_per_second = 8e9;
  rates.pack_batch_multiply_adds_per_second = 4e9;
  rates.memory_bytes_per_second = 16e9;
  rates.second_switch_seconds = 20e-6;
  rates.second_column_seconds = 3e-6;
  rates.second_traces_seconds = 5e-3;
  rates.second_short_trace_seconds = 1e-6;
  return rates;
}

}  // namespace blindfuse::support
