// A measurement for people and for programs.
#pragma once

#include <nlohmann/json.hpp>

#include "bench/load/measurement.h"
#include "bench/load/options.h"

namespace blindfuse::load {

// Everything, as one flat object except for latency_ms, errors and server.
nlohmann::ordered_json report_json(const Options& options, const Measurement& measured);

// A table on standard output.
void print_table(const Options& options, const Measurement& measured);

// What went wrong, on standard error: mismatches, and nothing answered at all. True when there was
// nothing.
bool report_trouble(const Measurement& measured);

}  // namespace blindfuse::load
