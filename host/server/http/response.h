// The response to a request: its head, its body, and the bytes of it that are not sent yet. Also
// resources, which a response has whole or in part.
#pragma once

#include <algorithm>
#include <cstdint>
#include <ctime>
#include <exception>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "host/server/http/request_head.h"

namespace blindfuse::http {

// The refusal of a request, in HTTP's own terms.
class Error : public std::exception {
 public:
  // `status` is HTTP's, 400 or more; `detail` one sentence for the client; `headers` go with the
  // response.
  Error(int status, std::string detail,
        std::vector<std::pair<std::string, std::string>> headers = {})
      : status_(status), detail_(std::move(detail)), headers_(std::move(headers)) {}

  int status() const { return status_; }
  const char* what() const noexcept override { return detail_.c_str(); }
  const std::vector<std::pair<std::string, std::string>>& headers() const { return headers_; }

 private:
  int status_;
  std::string detail_;
  std::vector<std::pair<std::string, std::string>> headers_;
};

// The bytes that a response sends directly from memory, without a copy. Any thread.
class Body {
 public:
  virtual ~Body() = default;

  virtual uint64_t size() const = 0;
  // The contiguous bytes from `offset` on, which is below size(): at least one.
  virtual std::span<const uint8_t> from(uint64_t offset) const = 0;
  // The memory that a response holds with this body. Server::end_responses_of() ends the responses
  // that hold it.
  virtual const void* memory() const = 0;
};

// Contiguous bytes, and the owner that keeps them in memory.
class MemoryBody final : public Body {
 public:
  MemoryBody(std::span<const uint8_t> bytes, std::shared_ptr<const void> owner)
      : bytes_(bytes), owner_(std::move(owner)) {}
  explicit MemoryBody(const std::shared_ptr<const std::string>& text)
      : MemoryBody({reinterpret_cast<const uint8_t*>(text->data()), text->size()}, text) {}

  uint64_t size() const override { return bytes_.size(); }
  std::span<const uint8_t> from(uint64_t offset) const override { return bytes_.subspan(offset); }
  const void* memory() const override { return owner_.get(); }

 private:
  const std::span<const uint8_t> bytes_;
  const std::shared_ptr<const void> owner_;
};

// A range of a body. Without a body, it is empty.
struct BodyRange {
  std::shared_ptr<const Body> body = {};
  uint64_t first = 0;
  uint64_t size = 0;

  const void* memory() const { return body ? body->memory() : nullptr; }
  // Returns Body::from() cut to the range.
  std::span<const uint8_t> from(uint64_t offset) const {
    const auto bytes = body->from(first + offset);
    return bytes.first(std::min<uint64_t>(bytes.size(), size - offset));
  }
};

struct Response {
  int status = 200;
  // The server adds Date, Content-Length, Connection and Keep-Alive.
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

// The unsent bytes of one response.
class Output {
 public:
  // The head as it is sent. The response's body follows unless `head_only`.
  Output(std::string head, Response response, bool head_only)
      : head_(std::move(head)),
        response_(std::move(response)),
        size_(head_.size() + (head_only ? 0 : response_.body_bytes())) {}

  bool is_empty() const { return sent_ == size_; }
  uint64_t bytes_sent() const { return sent_; }
  // The next bytes to write: one contiguous piece, or several small ones copied into `gathered`.
  std::string_view next(std::span<char> gathered) const;
  // This many bytes have been written.
  void advance(uint64_t count) { sent_ += count; }
  // The memory that it holds and that may be needed elsewhere (Body::memory()); nullptr: none.
  const void* memory() const { return response_.range.memory(); }

 private:
  // The contiguous bytes from `position` on, in the head, the text and the range together.
  std::string_view at(uint64_t position) const;

  // The member is not const, so that a move copies no body.
  std::string head_;
  Response response_;
  uint64_t size_;
  uint64_t sent_ = 0;
};

// A resource that clients fetch, with an entity tag, and in part on request (RFC 9110, sections
// 8.8.3, 13 and 14).
struct Resource {
  std::string content_type = {};
  std::string entity_tag = {};  // strong, with its quotes
  std::string cache_control = {};
  bool has_ranges = false;                // whether a client may ask for a part
  std::shared_ptr<const Body> body = {};  // at least one byte
};

// The response to a GET or HEAD: 200, 206 for a range, 304 for a resource that the client has
// already. Throws Error (416) for a range beyond the end.
Response respond_with(const RequestHead& request, Resource resource);

// The part of a resource that a Range header asks for.
struct ByteRange {
  uint64_t first = 0;
  uint64_t last = 0;  // included

  uint64_t size() const { return last - first + 1; }
  bool operator==(const ByteRange&) const = default;
};

// The range of a resource of `size` bytes (at least 1) that a Range header's value names. Nothing
// if the header is to be ignored, as a server may: it has another unit than bytes or several
// ranges, or is broken. Throws Error (416) if the range lies beyond the end.
std::optional<ByteRange> parse_byte_range(std::string_view header, uint64_t size);

}  // namespace blindfuse::http
