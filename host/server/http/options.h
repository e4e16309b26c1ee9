// The limits that a server sets its clients.
#pragma once

#include <chrono>
#include <cstddef>

namespace blindfuse::http {

struct Timeouts {
  std::chrono::milliseconds idle{5'000};    // between requests
  std::chrono::milliseconds head{10'000};   // from a request's first byte to the end of its header
  std::chrono::milliseconds body{30'000};   // for as much of a body as has come, plus a second for
                                            // every 32 KiB of that
  std::chrono::milliseconds write{10'000};  // for as much of a response as is sent, plus a second
                                            // for every 32 KiB of that
  std::chrono::milliseconds standstill{30'000};  // of a client that has sent or taken more
  std::chrono::milliseconds drain{60'000};       // for all of the above, once the server stops
  std::chrono::milliseconds linger{2'000};       // for a client to take note of a refusal
};

struct Options {
  unsigned threads = 4;  // at least 1; none of them waits for a client or for the service
  unsigned requests_per_connection_max = 1000;
  size_t connections_max = 1000;  // beyond that, clients that send nothing make room for new ones
  Timeouts timeouts = {};
};

}  // namespace blindfuse::http
