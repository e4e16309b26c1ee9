// What clients download: the manifest, the shard table, and hints.
#pragma once

#include <httplib.h>

#include <memory>
#include <string_view>

#include "host/server/serving_epoch.h"

namespace blindfuse {

// Each answers a GET or HEAD and may throw Refusal. `range` is the value of the request's Range
// header, or empty.

void answer_database(const std::shared_ptr<const ServingEpoch>& epoch,
                     const httplib::Request& request, std::string_view range,
                     httplib::Response& response);

void answer_shards(const std::shared_ptr<const ServingEpoch>& epoch,
                   const httplib::Request& request, std::string_view range,
                   httplib::Response& response);

// The hints of the shards that the parameter `shards` names, in that order; of all shards without
// it.
void answer_hint(const std::shared_ptr<const ServingEpoch>& epoch, const httplib::Request& request,
                 std::string_view range, httplib::Response& response);

}  // namespace blindfuse
