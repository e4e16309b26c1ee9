// The interface for programs: OpenAPI 3.1, with the sizes of the database that is served.
#pragma once

#include <string>

#include "host/server/routes/api_options.h"
#include "host/server/serving/serving_epoch.h"

namespace blindfuse {

// docs/HTTP_API.md in the form that tools read. JSON.
std::string openapi_document(const ServingEpoch& epoch, const ApiOptions& options);

}  // namespace blindfuse
