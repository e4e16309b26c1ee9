// Private look-ups: POST /v1/epochs/{epoch}/queries.
#pragma once

#include <memory>
#include <string>

#include "host/server/http/connection.h"
#include "host/server/routes/api.h"

namespace blindfuse {

// A request's queries, for counting and for the access log.
struct AskedQueries {
  std::string key_name;  // of the client's API key; empty if none is needed
  EpochId epoch;
  size_t count = 0;  // 0 until its body has arrived
};

// Answers a request with queries, from its head to its response. epoch: the one that the request
// names, which is asked.epoch. Throws Refusal, InputError for malformed queries, http::Error, the
// errors of BatchScheduler::ask(), and http::ClientLeft.
http::Awaitable<http::Response> answer_query(ApiContext& context, http::Connection& client,
                                             std::shared_ptr<const ServingEpoch> epoch,
                                             AskedQueries& asked);

}  // namespace blindfuse
