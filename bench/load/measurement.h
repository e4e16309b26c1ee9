// A whole measurement: the load, what it counted, and the checks of its answers.
#pragma once

#include <nlohmann/json.hpp>

#include "bench/load/load.h"

namespace blindfuse::load {

struct Measurement {
  Window window;
  CheckResult checks;              // of all the load, warming up included
  nlohmann::ordered_json figures;  // for programs: one flat object except for latency_ms and errors
};

// Takes as long as the options say. Throws the errors of reading files and of the client library.
Measurement measure(const Options& options);

// Writes mismatches, or that there was no answer at all, to standard error. Returns true if there
// was neither.
bool report_trouble(const Measurement& measured);

}  // namespace blindfuse::load
