// The responses to health checks, on the public listener and on the operator's.
#pragma once

#include "host/server/http/response.h"
#include "host/server/serving/readiness.h"

namespace blindfuse {

// The program runs.
http::Response live_response();

// The service accepts new clients. Throws Refusal (503) if it does not.
http::Response ready_response(const Readiness& readiness);

}  // namespace blindfuse
