#include "host/server/http/input.h"

#include <cstring>
#include <span>

#include "host/server/http/request_head.h"

namespace blindfuse::http {

Channel::Status Input::receive(Channel& channel) {
  if (!memory_) memory_ = std::make_unique_for_overwrite<char[]>(kHeadBytesMax);
  std::memmove(memory_.get(), memory_.get() + begin_, end_ - begin_);
  end_ -= begin_;
  begin_ = 0;
  const auto [status, count] = channel.read(std::span(memory_.get(), kHeadBytesMax).subspan(end_));
  end_ += count;
  return status;
}

void Input::release_if_empty() {
  if (!is_empty()) return;
  memory_.reset();
  clear();
}

}  // namespace blindfuse::http
