// An HTTP/1.1 response, read as its bytes come.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace blindfuse::load {

class ResponseReader {
 public:
  // Begins the next response; keeps its body when `keep_body`, else only counts it.
  void begin(bool keep_body);

  // Takes bytes up to the end of the response and returns how many that were. Throws
  // ProtocolViolation for what is no HTTP/1.1, or a head of more than 64 KiB.
  size_t feed(std::string_view bytes);

  // The server closed the connection; returns whether the response is whole by that.
  bool finish();

  bool is_complete() const { return state_ == State::kComplete; }
  bool has_begun() const { return head_bytes_ > 0; }

  // Of a complete response:
  int status() const { return status_; }
  bool closes() const { return closes_; }
  std::optional<uint64_t> retry_after_s() const { return retry_after_s_; }
  std::string take_body() { return std::move(body_); }

 private:
  enum class State {
    kStatusLine,
    kHeader,
    kBody,
    kBodyUntilClose,
    kChunkLength,
    kChunk,
    kChunkEnd,
    kTrailer,
    kComplete,
  };

  size_t feed_line(std::string_view bytes);
  size_t feed_body(std::string_view bytes);
  void read_line(std::string_view line);
  void read_status(std::string_view line);
  void read_header(std::string_view line);
  void read_chunk_length(std::string_view line);
  void end_head();

  State state_ = State::kComplete;
  bool keep_body_ = false;
  std::string line_;
  size_t head_bytes_ = 0;
  int status_ = 0;
  bool closes_ = false;
  bool chunked_ = false;
  std::optional<uint64_t> length_;
  std::optional<uint64_t> retry_after_s_;
  uint64_t left_ = 0;  // of the body or the chunk
  std::string body_;
};

}  // namespace blindfuse::load
