#include "host/server/routes/health.h"

#include "host/server/routes/problem.h"

namespace blindfuse {

http::Response live_response() {
  http::Response response{.text = "{\"status\":\"ok\"}\n"};
  response.set_header("Content-Type", "application/json");
  response.set_header("Cache-Control", "no-store");
  return response;
}

http::Response ready_response(const Readiness& readiness) {
  if (readiness.is_stopping()) {
    throw Refusal(ProblemKind::kStopping, "this server is stopping");
  }
  if (readiness.is_draining()) {
    throw Refusal(ProblemKind::kStopping, "this server is draining, as its operator asked");
  }
  return live_response();
}

}  // namespace blindfuse
