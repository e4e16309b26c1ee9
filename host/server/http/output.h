// The bytes of one response on their way to a client.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>

#include "host/server/http/response.h"

namespace blindfuse::http {

class Output {
 public:
  // The head as it is sent; the response's body follows unless `head_only`.
  Output(std::string head, Response response, bool head_only);

  bool is_empty() const { return sent_ == size_; }
  uint64_t bytes_sent() const { return sent_; }
  // What to write next: one piece as it lies in memory, or several small ones together in
  // `gathered`.
  std::string_view next(std::span<char> gathered) const;
  // So much of it has been written.
  void advance(uint64_t count) { sent_ += count; }
  // What it keeps in memory that others may want back (Body::memory()); nullptr: nothing.
  const void* memory() const { return response_.range.memory(); }

 private:
  // The head, the text, then the range. What lies together from `position` of them all.
  std::string_view at(uint64_t position) const;

  // Not const, so that moving this copies no body.
  std::string head_;
  Response response_;
  uint64_t size_;
  uint64_t sent_ = 0;
};

}  // namespace blindfuse::http
