// The response to a request.
#pragma once

#include <cstdint>
#include <ctime>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "host/server/http/body.h"

namespace blindfuse::http {

struct Response {
  int status = 200;
  // Without Date, Content-Length, Connection and Keep-Alive, which the server adds.
  std::vector<std::pair<std::string, std::string>> headers = {};

  // The body is one of these.
  std::string text = {};
  BodyRange range = {};

  bool closes_connection = false;  // after it, though the client may want to ask more

  uint64_t body_bytes() const { return text.size() + range.size; }
  // Replaces the header of this name if there is one.
  void set_header(std::string_view name, std::string value);
  // Empty if there is none.
  std::string_view header(std::string_view name) const;
};

// A time as in the header Date (RFC 9110, section 5.6.7).
std::string http_date(std::time_t time);

// Status line and header lines through the empty line, with the current time as Date. `connection`
// holds header lines of its own, each with its line end.
std::string serialize_head(const Response& response, std::string_view connection);

}  // namespace blindfuse::http
