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

// Throws InputError, naming the key, when an answer is wrong; ResourceError when the client program
// is missing or fails. limit: of the batches, where the database's engine computes on a device,
// which `calls` belong to.
SampleCheck check_samples(LoadedDatabase database, const std::string& samples_text,
                          const DeviceLimit& limit, std::shared_ptr<const DeviceCalls> calls);

}  // namespace blindfuse
