// Reports a client's progress to its caller.
#pragma once

#include <blindfuse/errors.h>
#include <blindfuse/progress.h>

namespace blindfuse {

// Throws CancelledError if the callback returns false.
inline void report_progress(const ProgressCallback& callback, const ClientProgress& progress) {
  if (callback && !callback(progress)) throw CancelledError();
}

}  // namespace blindfuse
