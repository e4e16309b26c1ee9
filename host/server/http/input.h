// The bytes that have arrived on a connection and are not used yet.
#pragma once

#include <cstddef>
#include <memory>
#include <string_view>

#include "host/server/http/channel.h"

namespace blindfuse::http {

// Holds memory only between receive() and release_if_empty(). So clients that send nothing hold no
// memory for their next request.
class Input {
 public:
  bool is_empty() const { return begin_ == end_; }
  std::string_view bytes() const { return {memory_.get() + begin_, end_ - begin_}; }
  void consume(size_t count) { begin_ += count; }

  // Takes in the bytes that have arrived, up to kHeadBytesMax in all.
  Channel::Status receive(Channel& channel);
  // Drops all bytes.
  void clear() { begin_ = end_ = 0; }
  void release_if_empty();

 private:
  std::unique_ptr<char[]> memory_;
  size_t begin_ = 0;
  size_t end_ = 0;
};

}  // namespace blindfuse::http
