// A request from the end of its header until its response is on its way.
#pragma once

#include <chrono>
#include <memory>
#include <optional>
#include <string>

#include "host/server/connections/body_reader.h"
#include "host/server/connections/request_head.h"
#include "host/server/epochs/pending_answer.h"
#include "host/server/routes/problem.h"
#include "host/server/routes/query_route.h"
#include "host/server/routes/resource.h"
#include "host/server/routes/router.h"

namespace blindfuse {

struct ActiveRequest {
  using Clock = std::chrono::steady_clock;

  RequestHead head;
  std::string head_text;  // as it arrived, but for what the HTTP library is not to see
  Clock::time_point begun_at;
  std::optional<RouteMatch> match;      // none: there is no such route
  std::optional<std::string> key_name;  // of the API key, where one is needed

  // Of a request with queries: what it is for, its body while that arrives, its answer while the
  // engine has it.
  std::optional<QueryRequest> query;
  std::optional<BodyReader> body;
  size_t query_count = 0;  // for who counts; known once the body is whole
  std::shared_ptr<PendingAnswer> answer;

  std::optional<Problem> problem;    // what it is refused for
  std::optional<Resource> resource;  // what it downloads; its parts as they are sent
};

}  // namespace blindfuse
