// The database's sample keys, asked for through the real query path: this database behind a real
// server on loopback, and the client program beside ours. The secrets of the queries stay in the
// client's process.
#pragma once

#include <string>

#include "host/database/loaded_database.h"

namespace blindfuse {

struct SampleCheck {
  size_t keys = 0;    // found, each with the value that it had when it was built in
  size_t absent = 0;  // random keys that were rightly not found
};

// Throws InputError, naming the key, when an answer is wrong; ResourceError when the client program
// is missing or fails.
SampleCheck check_samples(LoadedDatabase database, const std::string& samples_text);

}  // namespace blindfuse
