// One process of the load, from its secrets to its checks. What it says to its parent, and hears:
//
//   {"ready": FACTS}       hints and queries are there; facts of the database
//       {"start_ns": N}    the load begins at that time of the monotonic clock
//   {"window": WINDOW}     at the end of every window, until the parent says
//       {"stop": true}
//   {"checks": {...}}      and ends
//   {"failure": "..."}     instead of any of these
#pragma once

#include <string>

#include "bench/load/answer_check.h"
#include "bench/load/channel.h"
#include "bench/load/key_source.h"
#include "bench/load/options.h"

namespace blindfuse::load {

// Returns when all is said. `options` are those of this process.
void run_worker(const Options& options, KeySource& keys, const std::string& api_key,
                Channel& parent);

}  // namespace blindfuse::load
