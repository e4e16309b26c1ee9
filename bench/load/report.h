// Reports a measurement to people and to programs.
#pragma once

#include <nlohmann/json.hpp>

#include "bench/load/measurement.h"
#include "bench/load/options.h"

namespace blindfuse::load {

// Everything, as one flat object except for latency_ms, errors and server.
nlohmann::ordered_json report_json(const Options& options, const Measurement& measured);

// A table on standard output.
void print_table(const Options& options, const Measurement& measured);

// Writes problems to standard error: mismatches, or no answer at all. Returns true if there was
// none.
bool report_trouble(const Measurement& measured);

}  // namespace blindfuse::load
