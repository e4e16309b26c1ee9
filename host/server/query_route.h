// Private look-ups: POST /v1/epochs/{epoch}/queries.
#pragma once

#include <httplib.h>

#include <cstdint>
#include <memory>
#include <string>

#include "host/server/query_body.h"
#include "host/server/request_head.h"
#include "host/server/serving_epoch.h"

namespace blindfuse {

// A request whose head is right.
struct QueryRequest {
  std::shared_ptr<const ServingEpoch> epoch;
  BodyFormat format = BodyFormat::kBinary;
  QueryBodyLimits limits;
};

// What an epoch's layout allows in one request.
QueryBodyLimits query_limits(const ServingEpoch& epoch, uint64_t queries_per_request_max);

// Everything that can be known before the body is read or memory is taken for it. Throws Refusal.
QueryRequest check_query_head(std::shared_ptr<const ServingEpoch> epoch, const RequestHead& head,
                              const std::string& content_type, const std::string& content_encoding,
                              uint64_t queries_per_request_max);

// Answers the queries of a whole body. Throws Refusal.
void answer_queries(const QueryRequest& query, std::string body, httplib::Response& response);

}  // namespace blindfuse
