// The gate in front of the HTTP library: what a request's first bytes must look like before
// anything else reads them.
//
// cpp-httplib 0.11.4 forgives much that lets two programs disagree on where a request ends (a
// Content-Length that is no number, two of them, lines without CR, header values in
// percent-encoding), bounds neither the length nor the number of header lines, and matches some of
// what it reads with recursive regular expressions. So a head is checked here, strictly, and only a
// head that passes is given to it.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace blindfuse {

inline constexpr size_t kTargetBytesMax = 8'000;  // of the request target: path and query string
inline constexpr size_t kHeadBytesMax = 16'384;   // of request line and header lines together
inline constexpr size_t kHeaderLineBytesMax = 8'000;  // of one header line
inline constexpr size_t kHeaderLinesMax = 100;

struct RequestHead {
  size_t byte_count = 0;  // through the empty line
  std::string method;
  std::string path;  // of the target, percent-encoding undone
  std::optional<uint64_t> content_length;
  bool chunked = false;
  bool is_http_1_0 = false;
  bool wants_close = false;     // HTTP/1.0, or Connection: close
  bool wants_continue = false;  // Expect: 100-continue
  std::string content_type;     // these are empty without their header
  std::string content_encoding;
  std::string authorization;
  std::string origin;
  std::string range;

  // Where the names of the headers Range and Expect are, when there are such.
  size_t range_name_at = 0;
  size_t expect_name_at = 0;

  bool has_body() const { return chunked || content_length.value_or(0) > 0; }
};

// The head at the beginning of `bytes`, or nothing while it is not whole. Throws Refusal as soon as
// it cannot become a head any more, or is one that this server does not take.
std::optional<RequestHead> parse_request_head(std::string_view bytes);

}  // namespace blindfuse
