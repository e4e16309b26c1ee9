#include "host/server/http/output.h"

#include <algorithm>
#include <utility>

namespace blindfuse::http {

Output::Output(std::string head, Response response, bool head_only)
    : head_(std::move(head)),
      response_(std::move(response)),
      size_(head_.size() + (head_only ? 0 : response_.body_bytes())) {}

std::string_view Output::at(uint64_t position) const {
  for (const std::string_view text : {std::string_view(head_), std::string_view(response_.text)}) {
    if (position < text.size()) return text.substr(position);
    position -= text.size();
  }
  const auto bytes = response_.range.from(position);
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

std::string_view Output::next(std::span<char> gathered) const {
  size_t size = 0;
  while (sent_ + size < size_) {
    const std::string_view bytes = at(sent_ + size);
    if (size == 0 && bytes.size() >= gathered.size()) return bytes;
    if (bytes.size() > gathered.size() - size) break;
    std::ranges::copy(bytes, gathered.begin() + static_cast<ptrdiff_t>(size));
    size += bytes.size();
  }
  return {gathered.data(), size};
}

}  // namespace blindfuse::http
