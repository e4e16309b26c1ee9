// What is sent for a request.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace blindfuse::http {

struct Response {
  int status = 200;
  // Without Content-Length, Connection and Keep-Alive, which the server adds.
  std::vector<std::pair<std::string, std::string>> headers = {};

  // The body is `text`, or else `parts`, one after another. Parts are not copied.
  std::string text = {};
  std::vector<std::span<const uint8_t>> parts = {};
  std::shared_ptr<const void> owner = {};  // keeps the parts in memory until they are sent

  bool closes_connection = false;  // after it, though the client may want to ask more

  uint64_t body_bytes() const;
  // Replaces the header of this name if there is one.
  void set_header(std::string_view name, std::string value);
  // Empty when there is none.
  std::string_view header(std::string_view name) const;
};

// Status line and header lines through the empty line. `connection` holds header lines of its own,
// each with its line end.
std::string serialize_head(const Response& response, std::string_view connection);

}  // namespace blindfuse::http
