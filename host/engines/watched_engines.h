// Engines whose calls a watchdog can follow, since a device may not return from any of them.
#pragma once

#include <memory>

#include "host/system/device_calls.h"
#include "src/engine/engine_maker.h"

namespace blindfuse {

// The same maker. Its calls, and those of all objects that it makes, are noted in `calls` while
// they are under way. For answer pipelines these are the calls before batches, and checks: the code
// that begins batches watches the batches. A call that starts a driver or loads kernels may take
// kDeviceStartLimit more.
std::unique_ptr<EngineMaker> make_watched_engine_maker(std::unique_ptr<EngineMaker> maker,
                                                       std::shared_ptr<DeviceCalls> calls);

}  // namespace blindfuse
