// How bytes get to a server and back: the seam that tests, and clients that are not native
// programs, fill in their own way.
#pragma once

#include <cstdint>
#include <limits>
#include <optional>
#include <span>
#include <string>

namespace blindfuse {

inline constexpr uint64_t kProblemBytesMax = 65'536;

// What a server answered, but for the body of a success, which a BodyReceiver got.
struct HttpReply {
  int status = 0;
  std::string content_type;
  std::optional<uint64_t> retry_after_s;
  std::string problem;  // the body of an error, cut at kProblemBytesMax
};

// Takes the body of a success, piece by piece. What it throws ends the request and is thrown to its
// caller.
class BodyReceiver {
 public:
  virtual ~BodyReceiver() = default;
  // Once, before the body, when the status is 200 or 206. `length` is what the server declares, if
  // it does.
  virtual void begin(int status, std::optional<uint64_t> length) = 0;
  virtual void receive(std::span<const uint8_t> bytes) = 0;
  // A longer body is refused: a transport that gets bodies whole need not copy one.
  virtual uint64_t bytes_max() const { return std::numeric_limits<uint64_t>::max(); }
};

// One server. One thread at a time. Paths begin with a slash and are relative to the server's
// prefix. Both throw ConnectionTrouble when no whole answer came; any status is an answer. Neither
// sends a request twice.
class Transport {
 public:
  virtual ~Transport() = default;

  // Asks for the body from first_byte on: with a Range header, unless that is 0.
  virtual HttpReply get(const std::string& path, uint64_t first_byte, BodyReceiver& receiver) = 0;

  // Sends `body` as application/octet-stream.
  virtual HttpReply post(const std::string& path, std::span<const uint8_t> body,
                         BodyReceiver& receiver) = 0;

  // With every request.
  virtual bool sends_api_key() const { return false; }
};

}  // namespace blindfuse
