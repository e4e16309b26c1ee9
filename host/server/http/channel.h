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

}  // namespace blindfuse::http
