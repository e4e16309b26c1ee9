// Logs the messages about the engines that commands choose.
#pragma once

#include "host/engines/checked_engines.h"

namespace blindfuse {

// Logs each message.
EngineListener logging_engine_listener();

}  // namespace blindfuse
