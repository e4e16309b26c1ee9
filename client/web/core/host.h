// The functions that the module's JavaScript provides: the properties `exchange` and `progress`
// that worker.js gives to the module when it makes one.
#pragma once

#include <blindfuse/progress.h>

#include <chrono>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

namespace blindfuse::web {

struct ExchangeRequest {
  std::string method;
  std::string url;
  std::string range;  // of the header; empty: none
  std::string api_key;
  std::span<const uint8_t> body;  // of a POST
  // At most this many bytes of a body are copied:
  uint64_t body_bytes_max = 0;           // of a success
  uint64_t problem_bytes_max = 0;        // of anything else
  std::chrono::milliseconds timeout{1};  // for all of it, at least 1
};

struct ExchangeReply {
  int status = 0;     // 0: no whole answer came
  std::string error;  // the browser's error; "TimeoutError" if the time was over
  std::string content_type;
  std::string retry_after;
  std::string content_range;
  uint64_t body_bytes = 0;  // the number received
  std::vector<uint8_t> body;
};

// Makes one HTTP request, and waits for it.
ExchangeReply exchange(const ExchangeRequest& request);

// Reports progress to the page. Never stops a call: a page stops a client by ending its worker.
void tell_progress(const ClientProgress& progress);

}  // namespace blindfuse::web
