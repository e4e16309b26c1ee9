// What clients download: the manifest, the table of shards and packs, and hints or masks.
#pragma once

#include <httplib.h>

#include <memory>

#include "host/server/epochs/serving_epoch.h"
#include "host/server/routes/resource.h"

namespace blindfuse {

// Each holds on to its epoch. hint_resource throws Refusal.

Resource database_resource(const std::shared_ptr<const ServingEpoch>& epoch);

Resource shards_resource(const std::shared_ptr<const ServingEpoch>& epoch);

// The hints of the shards that the request's parameter `shards` names, or the masks of the packs
// that `packs` names where responses are packed, in that order; all without it.
Resource hint_resource(const std::shared_ptr<const ServingEpoch>& epoch,
                       const httplib::Request& request);

}  // namespace blindfuse
