// Private look-ups: POST /v1/epochs/{epoch}/queries.
#pragma once

#include <memory>

#include "host/server/http/connection.h"
#include "host/server/routes/api.h"

namespace blindfuse {

// Answers a request with queries, from its head to its response. epoch: the one that the request
// names. Throws Refusal, InputError for malformed queries, http::Error, the errors of
// BatchScheduler::ask(), and http::ClientLeft.
http::Awaitable<http::Response> answer_query(ApiContext& context, http::Connection& client,
                                             std::shared_ptr<const ServingEpoch> epoch,
                                             RequestRecord& record);

}  // namespace blindfuse
