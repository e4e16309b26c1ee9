// The database's sample keys, asked for through the real query path: a real server serves this
// database on loopback, and the client program is the one next to ours. The secrets of the queries
// stay in the client's process.
#pragma once

#include <string>

#include "host/database/loaded_database.h"
#include "host/server/device_end.h"

namespace blindfuse {

struct SampleCheck {
  size_t keys = 0;    // found, each with the value that it had when it was built in
  size_t absent = 0;  // random keys that were rightly not found
};

// Throws InputError, which names the key, if an answer is wrong. Throws ResourceError if the client
// program is missing or fails. end: ends the process if the engine's device is lost.
SampleCheck check_samples(LoadedDatabase database, const std::string& samples_text, DeviceEnd& end);

}  // namespace blindfuse
