// How a client tells its caller how far it is, and how the caller stops it.
#pragma once

#include <cstdint>
#include <functional>

#include "client/errors.h"

namespace blindfuse {

enum class ClientStage {
  kWaitingForLock,    // another client fetches the same hints; no amounts
  kFetchingHints,     // in bytes
  kPreparingQueries,  // in rows of the database
  kWaitingForServer,  // it was busy; no amounts
};

struct ClientProgress {
  ClientStage stage;
  uint64_t done = 0;
  uint64_t total = 0;
};

// Returns whether to go on: false makes the call in progress throw Cancelled. Called on the thread
// that made that call, many times a second. May be empty.
using ProgressCallback = std::function<bool(const ClientProgress&)>;

inline void report_progress(const ProgressCallback& callback, const ClientProgress& progress) {
  if (callback && !callback(progress)) throw Cancelled();
}

}  // namespace blindfuse
