// A request: its line and header, and its body as it arrives. Both are read strictly. A head whose
// end or meaning two programs could read differently is refused.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace blindfuse::http {

inline constexpr size_t kTargetBytesMax = 8'000;  // of the request target: path and query string
inline constexpr size_t kHeadBytesMax = 16'384;   // of request line and header lines together
inline constexpr size_t kHeaderLineBytesMax = 8'000;  // of one header line
inline constexpr size_t kHeaderLinesMax = 100;

struct RequestHead {
  size_t byte_count = 0;  // through the empty line, with empty lines before it
  std::string method;
  std::string host;   // of the target if it is a URL, otherwise the header Host
  std::string path;   // of the target, percent-encoding undone
  std::string query;  // of the target, what follows the first question mark, as it was sent
  std::vector<std::pair<std::string, std::string>> headers;

  std::optional<uint64_t> content_length;
  bool chunked = false;
  bool is_http_1_0 = false;
  bool wants_close = false;     // HTTP/1.0, or Connection: close
  bool wants_continue = false;  // Expect: 100-continue

  bool has_body() const { return chunked || content_length.value_or(0) > 0; }
  // The value of the first header of this name. Empty if there is none.
  std::string_view header(std::string_view name) const;
  // The values of all headers of this name, separated by commas: a list may come in several lines
  // (RFC 9110, section 5.3).
  std::string list(std::string_view name) const;
};

// The head at the beginning of `bytes`, or nothing while it is not complete. Throws Error as soon
// as it cannot become a head any more, or is one that this server does not accept: 400, 414, 431,
// 501, 505.
std::optional<RequestHead> parse_request_head(std::string_view bytes);

// Text without the spaces and tabs around it.
std::string_view trimmed(std::string_view text);
// The items of a list with commas, trimmed.
std::vector<std::string_view> list_items(std::string_view list);

// The names and values of a query string, percent-encoding undone, in their order.
std::vector<std::pair<std::string, std::string>> parse_query(std::string_view query);

// The body of a request as it arrives: of a length that was announced, or in chunks (RFC 9112,
// sections 6 and 7.1).
class BodyReader {
 public:
  // Throws Error (413) for a Content-Length above bytes_max. Memory is taken as bytes arrive.
  BodyReader(const RequestHead& head, uint64_t bytes_max);

  // Takes the bytes that belong to the body from the front of `bytes`, and returns their number.
  // Throws Error: 413 if the body grows beyond bytes_max, 400 if its chunks are malformed.
  size_t take(std::string_view bytes);

  // The memory into which the next bytes of a body may be received directly. Empty if the body is
  // whole or comes in chunks. The second function takes the number of bytes received.
  std::span<char> room();
  void fill(size_t count);

  bool is_whole() const { return state_ == State::kWhole; }
  // The bytes of the body that have arrived, without its framing.
  std::span<char> bytes() const { return {bytes_.get(), size_}; }
  size_t byte_count() const { return size_; }

 private:
  enum class State { kLength, kSizeLine, kData, kDataEnd, kTrailer, kWhole };

  void append(std::string_view bytes);
  size_t take_line(std::string_view bytes);
  void end_line();

  const uint64_t bytes_max_;
  State state_;
  uint64_t left_ = 0;     // of the body, or of the chunk
  uint64_t framing_ = 0;  // bytes of a chunked body that were none of its own
  std::string line_;      // the part of a size or a trailer that has arrived
  // A vector would write all of its memory, and this is only written once it is needed.
  std::unique_ptr<char[]> bytes_;
  size_t size_ = 0;
  size_t capacity_ = 0;
};

}  // namespace blindfuse::http
