// Writes a line for each request: the client, the kind of request, and the outcome. The log never
// has a body, an API key, or a path with the names in it.
#pragma once

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>

#include "host/server/routes/router.h"

namespace blindfuse {

struct AccessEvent {
  std::string method = "-";  // "-": not known
  std::optional<Route> route;
  int status = 0;
  uint64_t received_bytes = 0;
  uint64_t sent_bytes = 0;  // of the response's body, if the client takes all of it
  std::string epoch;        // that the request names, if the server knows it
  size_t query_count = 0;
  std::chrono::duration<double> time{0};
  std::string peer;      // the client's address
  std::string key_name;  // of its API key, when one is needed
};

// Health checks are left out: they come every few seconds and carry no information.
void log_access(const AccessEvent& event);

}  // namespace blindfuse
