// How a client tells its caller how far it is, and how the caller stops it.
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

// Returns whether to go on: false makes the call in progress throw CancelledError. Called on a
// thread that made a call, many times a second. May be empty.
using ProgressCallback = std::function<bool(const ClientProgress&)>;

}  // namespace blindfuse
