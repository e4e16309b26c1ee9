// The epoch that a request names.
#pragma once

#include <memory>

#include "host/server/serving/serving_epoch.h"
#include "src/protocol/manifest.h"

namespace blindfuse {

// Throws Refusal: 410 for one that was served before, 404 for any other that is not served.
std::shared_ptr<const ServingEpoch> find_epoch(const ServedEpochs& epochs, const EpochId& id);

}  // namespace blindfuse
