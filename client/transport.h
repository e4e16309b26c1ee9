// Moves bytes to a server and back. Tests, and clients that are not native programs, have
// implementations of their own.
#pragma once

#include <charconv>
#include <cstdint>
#include <limits>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include <blindfuse/errors.h>

#include "client/deadline.h"

namespace blindfuse {

inline constexpr uint64_t kProblemBytesMax = 65'536;

// The number that a header writes in decimal digits, if it is one below 2^64.
inline std::optional<uint64_t> number_in(std::string_view text) {
  uint64_t number = 0;
  const char* const end = text.data() + text.size();
  const auto [stop, error] = std::from_chars(text.data(), end, number);
  if (error != std::errc() || stop != end) return std::nullopt;
  return number;
}

inline bool succeeded(int status) { return status == 200 || status == 206; }

// The answer of a server, without the body of a success, which a BodyReceiver got.
struct HttpReply {
  int status = 0;
  std::string content_type;
  std::optional<uint64_t> retry_after_s;
  std::string problem;        // the body of an error, cut at kProblemBytesMax
  std::string location = {};  // the target of a redirect
};

// Takes the body of a success, piece by piece. Its exceptions end the request and reach the caller.
class BodyReceiver {
 public:
  virtual ~BodyReceiver() = default;
  // Called once, before the body, if the status is 200 or 206. `length` is the length that the
  // server declares, if it does.
  virtual void begin(int status, std::optional<uint64_t> length) = 0;
  virtual void receive(std::span<const uint8_t> bytes) = 0;
  // A longer body is refused. A transport that gets bodies as a whole need not copy one.
  virtual uint64_t bytes_max() const { return std::numeric_limits<uint64_t>::max(); }
};

// A connection that had served requests before closed during this one, before a byte of the answer.
// Many servers close idle connections, so another attempt over another connection is worthwhile.
class KeptConnectionClosed : public ConnectionError {
 public:
  using ConnectionError::ConnectionError;
};

// A connection to one server. One thread at a time. Paths begin with a slash and are relative to
// the server's prefix. Both functions throw ConnectionError if no complete answer came. Any status
// is an answer.
//
// A GET may be sent twice if the first attempt met a KeptConnectionClosed. A POST never is: it
// throws that error. It cannot be known whether the server read the request, and the next one must
// be made with other secrets.
class Transport {
 public:
  virtual ~Transport() = default;

  // The deadline of the requests, which are those of one call, or of one after another. It outlives
  // the transport. A transport without a given deadline may have one of its own for each request.
  void set_deadline(Deadline& deadline) { deadline_ = &deadline; }

  // Requests the body from first_byte on, with a Range header unless that is 0.
  virtual HttpReply get(const std::string& path, uint64_t first_byte, BodyReceiver& receiver) = 0;

  // Sends `body` as application/octet-stream.
  virtual HttpReply post(const std::string& path, std::span<const uint8_t> body,
                         BodyReceiver& receiver) = 0;

  // Ends the connection, if one is kept. The next request opens another.
  virtual void close_connection() {}

  // True if every request has an API key.
  virtual bool sends_api_key() const { return false; }

 protected:
  Deadline* deadline() const { return deadline_; }

 private:
  Deadline* deadline_ = nullptr;
};

}  // namespace blindfuse
