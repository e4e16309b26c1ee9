// A whole measurement: the load, its windows, the server's own figures, and the checks.
#pragma once

#include <nlohmann/json.hpp>
#include <vector>

#include "bench/load/answer_check.h"
#include "bench/load/options.h"
#include "bench/load/window.h"

namespace blindfuse::load {

struct Measurement {
  nlohmann::json database;          // facts of it: matrix_bytes and others
  Window window;                    // the last one
  nlohmann::json server;            // what server_figures() gives, or null
  std::vector<double> throughputs;  // of all windows
  bool stable = false;              // the last two agreed
  CheckResult checks;               // of all the load, warming up included
};

// Takes as long as the options say. Throws what reading files, the client library and
// WorkerProcesses throw.
Measurement measure(const Options& options);

}  // namespace blindfuse::load
