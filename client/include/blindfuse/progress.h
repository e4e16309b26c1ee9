// The progress of a client's calls, and the callback that can stop them.
#pragma once

#include <blindfuse/errors.h>

#include <cstdint>
#include <functional>

namespace blindfuse {

enum class ClientStage {
  kWaitingForLock,    // another client fetches the same hints; no amounts
  kFetchingHints,     // in bytes
  kPreparingQueries,  // in rows of the database
  kWaitingForServer,  // it was busy; no amounts
  kWaitingForAnswer,  // the server works, or the network; no amounts
  kCheckingHints,     // in bytes
  kDecodingAnswers,   // in keys
};

struct ClientProgress {
  ClientStage stage;
  uint64_t done = 0;
  uint64_t total = 0;
};

// Returns whether the call may go on. After false, the call in progress throws CancelledError.
// Called many times a second, on a thread that made a call. May be empty.
using ProgressCallback = std::function<bool(const ClientProgress&)>;

}  // namespace blindfuse
