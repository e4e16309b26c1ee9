#include "host/server/http/output.h"

#include <algorithm>
#include <utility>

namespace blindfuse::http {

Output::Output(std::string head, Response response, bool head_only)
    : head_(std::move(head)),
      response_(std::move(response)),
      head_only_(head_only),
      bytes_left_(head_.size() + (head_only ? 0 : response_.body_bytes())) {}

std::string_view Output::piece(size_t i) const {
  if (i == 0) return head_;
  if (i == 1) return response_.text;
  const auto part = response_.parts[i - 2];
  return {reinterpret_cast<const char*>(part.data()), part.size()};
}

std::string_view Output::next(std::span<char> gathered) const {
  size_t size = 0;
  size_t at = at_;
  for (size_t i = piece_; i < piece_count(); ++i, at = 0) {
    const std::string_view bytes = piece(i).substr(at);
    if (size == 0 && bytes.size() >= gathered.size()) return bytes;
    if (bytes.size() > gathered.size() - size) break;
    std::ranges::copy(bytes, gathered.begin() + static_cast<ptrdiff_t>(size));
    size += bytes.size();
  }
  return {gathered.data(), size};
}

void Output::advance(size_t count) {
  bytes_left_ -= count;
  at_ += count;
  while (piece_ < piece_count() && at_ >= piece(piece_).size()) {
    at_ -= piece(piece_).size();
    ++piece_;
  }
}

}  // namespace blindfuse::http
