// Bytes to and from a server, through TLS or plain, without waiting.
#pragma once

#include <openssl/ssl.h>

#include <memory>
#include <span>
#include <string_view>

#include "bench/load/endpoint.h"
#include "src/system/file.h"

namespace blindfuse::load {

class Stream {
 public:
  enum class Status {
    kDone,
    kWait,    // try again when the socket is ready
    kClosed,  // by the server, or broken
  };

  // Begins to connect.
  explicit Stream(const Endpoint& endpoint);

  int fd() const { return socket_.get(); }

  // To be called until it is done, before anything else.
  Status establish();
  bool is_established() const { return established_; }

  // Writes what can be written and takes it off `bytes`.
  Status write(std::string_view& bytes);

  // Reads at least one byte when it is done; sets `count`.
  Status read(std::span<char> bytes, size_t& count);

 private:
  Status connected();
  Status tls_status(int result) const;

  FileDescriptor socket_;
  std::unique_ptr<SSL, decltype(&SSL_free)> tls_{nullptr, &SSL_free};
  bool connected_ = false;
  bool established_ = false;
};

}  // namespace blindfuse::load
