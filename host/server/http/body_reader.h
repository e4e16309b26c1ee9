// The body of a request as it arrives: of a length that was announced, or in chunks (RFC 9112,
// sections 6 and 7.1).
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>

#include "host/server/http/request_head.h"

namespace blindfuse::http {

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
