// What all requests to the service share.
#pragma once

#include <atomic>

#include "host/server/routes/api_options.h"
#include "host/server/serving/server_metrics.h"
#include "host/server/serving/serving_epoch.h"

namespace blindfuse {

struct ApiContext {
  const ServedEpochs& epochs;
  ServerMetrics& metrics;
  const ApiOptions options;
  std::atomic<bool> stopping = false;
};

}  // namespace blindfuse
