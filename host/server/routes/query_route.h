// Private look-ups: POST /v1/epochs/{epoch}/queries.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>

#include "host/server/http/request_head.h"
#include "host/server/http/response.h"
#include "host/server/routes/api_options.h"
#include "host/server/routes/problem.h"
#include "host/server/routes/query_body.h"
#include "host/server/serving/batch_scheduler.h"
#include "host/server/serving/serving_epoch.h"

namespace blindfuse {

// A request with a valid head. It does not hold its epoch, since a body may take a long time to
// arrive.
struct QueryRequest {
  EpochId epoch;
  BodyFormat format = BodyFormat::kBinary;
  QueryBodyLimits limits;
  uint64_t response_bytes = 0;  // of one query
};

// The limits that the options and an epoch's layout set a request.
QueryBodyLimits query_limits(const ServingEpoch& epoch, const ApiOptions& options);

// Checks everything that can be checked before the body is read or memory is allocated for it.
// Throws Refusal.
QueryRequest check_query_head(const ServingEpoch& epoch, const http::RequestHead& head,
                              const ApiOptions& options);

// The queries of a whole body, within the body, which is overwritten. `epoch` is that of the
// request. Throws Refusal.
std::span<const uint8_t> read_queries(const ServingEpoch& epoch, const QueryRequest& query,
                                      std::span<char> body);

// Throws Refusal if the queue has no room for this many queries of a client now. client: as for
// BatchScheduler::ask().
void check_queue(const ServingEpoch& epoch, const std::string& client, size_t query_count);

// Queues the queries of read_queries(), which may be freed as soon as this returns. The epoch stays
// until the answer is done. Throws Refusal, and ResourceError.
std::shared_ptr<PendingAnswer> ask_queries(const ServingEpoch& epoch, const std::string& client,
                                           std::span<const uint8_t> queries,
                                           PendingAnswer::Clock::time_point deadline,
                                           std::function<void()> on_done);

// The response for an answer of the epoch that is done. Takes the answer's bytes. Throws Refusal.
http::Response answer_queries(const ServingEpoch& epoch, const QueryRequest& query,
                              PendingAnswer& answer);

// The refusal of queries that the engine did not begin with in time.
Refusal timed_out_in_queue();
// The refusal of queries that this machine failed to take, for example for lack of memory.
Refusal queries_failed();

}  // namespace blindfuse
