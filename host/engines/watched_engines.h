// Engines whose calls somebody can watch, since a device may not come back from any of them.
#pragma once

#include <memory>

#include "host/system/device_calls.h"
#include "src/engine/engine_maker.h"

namespace blindfuse {

// The same maker, whose calls, and those of all that it makes, are noted in `calls` while they are
// under way. Of answer pipelines that is what comes before batches, and checks: the code that
// begins batches watches them. What starts a driver or loads kernels is allowed kDeviceStartLimit
// in addition.
std::unique_ptr<EngineMaker> make_watched_engine_maker(std::unique_ptr<EngineMaker> maker,
                                                       std::shared_ptr<DeviceCalls> calls);

}  // namespace blindfuse
