// The downloads of clients: the manifest, the table of shards and packs, and hints or masks.
#pragma once

#include "host/server/http/request_head.h"
#include "host/server/http/resource.h"
#include "host/server/serving/serving_epoch.h"

namespace blindfuse {

// Each keeps the epoch's downloads in memory. private_only: shared caches must not store it.

http::Resource database_resource(const ServingEpoch& epoch);

http::Resource shards_resource(const ServingEpoch& epoch, bool private_only);

// The hints of the shards that the request's parameter `shards` names, in that order. If responses
// are packed, the masks of the packs that `packs` names. Without the parameter, all of them. Throws
// Refusal.
http::Resource hint_resource(const ServingEpoch& epoch, const http::RequestHead& request,
                             bool private_only);

}  // namespace blindfuse
