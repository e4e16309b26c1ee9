// What commands log of the engines that they choose.
#pragma once

#include "host/engines/checked_engines.h"

namespace blindfuse {

// Logs what it is told.
EngineListener logging_engine_listener();

}  // namespace blindfuse
