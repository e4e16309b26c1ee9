// A whole measurement: the load, the server's own figures, and the checks.
#pragma once

#include <nlohmann/json.hpp>

#include "bench/load/answer_check.h"
#include "bench/load/options.h"
#include "bench/load/window.h"

namespace blindfuse::load {

struct Measurement {
  nlohmann::json database;  // facts of it: matrix_bytes and others
  Window window;
  nlohmann::json server;  // what server_figures() gives, or null
  CheckResult checks;     // of all the load, warming up included
};

// Takes as long as the options say. Throws the errors of reading files and of the client library.
Measurement measure(const Options& options);

}  // namespace blindfuse::load
