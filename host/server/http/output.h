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

  bool is_empty() const { return piece_ == piece_count(); }
  uint64_t bytes_left() const { return bytes_left_; }
  // What to write next: one piece as it lies in memory, or several small ones together in
  // `gathered`.
  std::string_view next(std::span<char> gathered) const;
  // So much of it has been written.
  void advance(size_t count);

 private:
  // The head, the text, then the parts.
  size_t piece_count() const { return head_only_ ? 1 : 2 + response_.parts.size(); }
  std::string_view piece(size_t i) const;

  const std::string head_;
  const Response response_;
  const bool head_only_;
  size_t piece_ = 0;  // the next
  size_t at_ = 0;     // bytes of it that are through
  uint64_t bytes_left_;
};

}  // namespace blindfuse::http
