// The part of the metrics that describes the present moment.
#pragma once

#include "host/server/serving/server_metrics.h"
#include "host/server/serving/serving_epoch.h"

namespace blindfuse {

ServerState state_of(const ServedEpochs& epochs);

}  // namespace blindfuse
