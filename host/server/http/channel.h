// Exchanges bytes with one client, in the clear or through TLS. Never waits.
#pragma once

#include <cstddef>
#include <memory>
#include <span>
#include <string_view>

#include "src/system/file.h"

namespace blindfuse::http {

class Channel {
 public:
  enum class Status {
    kDone,       // `count` bytes, at least one
    kWantRead,   // nothing now; again once the socket can be read
    kWantWrite,  // nothing now; again once the socket can be written
    kClosed,     // nothing ever again: the client has finished, or failed
  };
  struct Result {
    Status status;
    size_t count = 0;
  };

  virtual ~Channel() = default;

  virtual int fd() const = 0;
  virtual Result read(std::span<char> into) = 0;
  virtual Result write(std::string_view bytes) = 0;
  // Tells the client that nothing more will be sent.
  virtual void finish_writing() = 0;
};

// `socket` is non-blocking.
std::unique_ptr<Channel> make_plain_channel(FileDescriptor socket);

// The bytes that have arrived on a connection and are not used yet. Holds memory only between
// receive() and release_if_empty(). So clients that send nothing hold no memory for their next
// request.
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
