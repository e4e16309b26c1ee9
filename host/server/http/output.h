// The unsent bytes of one response.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>

#include "host/server/http/response.h"

namespace blindfuse::http {

class Output {
 public:
  // The head as it is sent. The response's body follows unless `head_only`.
  Output(std::string head, Response response, bool head_only);

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

  // Not const, so that a move copies no body.
  std::string head_;
  Response response_;
  uint64_t size_;
  uint64_t sent_ = 0;
};

}  // namespace blindfuse::http
