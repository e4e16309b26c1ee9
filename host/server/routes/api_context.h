// The data that all requests to the service share.
#pragma once

#include "host/server/routes/api_options.h"
#include "host/server/serving/readiness.h"
#include "host/server/serving/server_metrics.h"
#include "host/server/serving/serving_epoch.h"

namespace blindfuse {

struct ApiContext {
  const ServedEpochs& epochs;
  ServerMetrics& metrics;
  const Readiness& readiness;
  const ApiOptions options;
};

}  // namespace blindfuse
