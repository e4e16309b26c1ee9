// Exchanges bytes with one client, in the clear or through TLS.
#pragma once

#include <atomic>
#include <cstddef>
#include <ctime>
#include <filesystem>
#include <memory>
#include <mutex>
#include <span>
#include <string_view>

#include "src/system/file.h"

struct ssl_ctx_st;

namespace blindfuse::http {

// No function waits.
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

// TLS for clients: a certificate and its key, which can be replaced while connections are open.
// TLS 1.2 and 1.3, with OpenSSL's default settings.
class TlsCertificate {
 public:
  // PEM files: the certificate with the chain up to a root, leaf first, and its private key. Throws
  // InputError, with the file's name and OpenSSL's message, if they cannot be read or do not belong
  // together.
  TlsCertificate(std::filesystem::path certificate, std::filesystem::path key);

  // Reads both files again, for connections from now on. Throws InputError; the previous
  // certificate then stays. Logs how long the chain is valid, as a warning if it is invalid or
  // expires soon. Any thread, also for the next functions.
  void reload();
  // The end of the time for which all certificates of the chain are valid.
  std::time_t expires_at() const { return expires_at_; }
  // `socket` is non-blocking. The first reads and writes make the handshake.
  std::unique_ptr<Channel> make_channel(FileDescriptor socket) const;

 private:
  const std::filesystem::path certificate_;
  const std::filesystem::path key_;
  std::atomic<std::time_t> expires_at_ = 0;
  mutable std::mutex mutex_;
  std::shared_ptr<ssl_ctx_st> context_;
};

}  // namespace blindfuse::http
