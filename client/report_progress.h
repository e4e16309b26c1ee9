// Tells a caller how far a client is.
#pragma once

#include <blindfuse/errors.h>
#include <blindfuse/progress.h>

namespace blindfuse {

// Throws CancelledError when the callback says stop.
inline void report_progress(const ProgressCallback& callback, const ClientProgress& progress) {
  if (callback && !callback(progress)) throw CancelledError();
}

}  // namespace blindfuse
