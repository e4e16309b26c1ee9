// The database's sample keys, asked for through the real query path: a real server serves this
// database on loopback, and the client program is the one next to ours. The secrets of the queries
// stay in the client's process.
#pragma once

#include <memory>
#include <string>

#include "host/commands/device_limit.h"
#include "host/database/loaded_database.h"

namespace blindfuse {

struct SampleCheck {
  size_t keys = 0;    // found, each with the value that it had when it was built in
  size_t absent = 0;  // random keys that were rightly not found
};

// Throws InputError, which names the key, if an answer is wrong. Throws ResourceError if the client
// program is missing or fails. limit: for the batches, if the database's engine computes on a
// device, whose calls are in `calls`.
SampleCheck check_samples(LoadedDatabase database, const std::string& samples_text,
                          const DeviceLimit& limit, std::shared_ptr<const DeviceCalls> calls);

}  // namespace blindfuse
