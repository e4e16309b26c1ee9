// What metrics say of the present moment.
#pragma once

#include "host/server/epochs/serving_epoch.h"
#include "host/server/server_metrics.h"

namespace blindfuse {

ServerState state_of(const ServedEpochs& epochs);

}  // namespace blindfuse
