// The options of the service's addresses, and of the access to them.
#pragma once

#include <chrono>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "host/server/routes/page.h"
#include "host/server/serving/api_keys.h"

namespace blindfuse {

inline constexpr uint64_t kQueriesPerRequestUsual = 16;

struct ApiOptions {
  // 1 .. the queue's limit. None: kQueriesPerRequestUsual, or as many as may wait; and 1 where a
  // query asks for several keys, since it has the bytes of as many.
  std::optional<uint64_t> queries_per_request_max = {};
  std::chrono::milliseconds answer_timeout{
      30'000};  // from the end of a body until the engine begins
  // The bytes that all bodies that are arriving may hold, and all responses from the queue until
  // they are sent. One of the largest is always possible.
  uint64_t request_bytes_max = uint64_t{256} << 20;
  uint64_t response_bytes_max = uint64_t{256} << 20;
  std::shared_ptr<const ApiKeys> api_keys = {};  // none: anyone may ask
  // The header in which a reverse proxy sends the address of its client, last if there are several.
  // Empty: there is no proxy.
  std::string client_address_header = {};
  std::vector<std::string> cors_origins = {};  // whose pages may ask; "*": all
  std::shared_ptr<const Page> page = {};       // none: browsers get no page
  bool access_log = false;
};

}  // namespace blindfuse
