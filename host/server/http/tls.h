// TLS for clients: a certificate and its key, replaced while connections are open.
#pragma once

#include <filesystem>
#include <memory>
#include <mutex>

#include "host/server/http/channel.h"
#include "src/system/file.h"

struct ssl_ctx_st;

namespace blindfuse::http {

// TLS 1.2 and 1.3, with what OpenSSL takes by default.
class TlsCertificate {
 public:
  // PEM files: the certificate with the chain up to a root, leaf first; its private key. Throws
  // InputError, naming the file and what OpenSSL says, when they cannot be read or do not belong
  // together.
  TlsCertificate(std::filesystem::path certificate, std::filesystem::path key);

  // Reads both files again, for connections from now on. Throws InputError; what was there stays
  // then. Any thread, also for the next.
  void reload();
  // `socket` is non-blocking. The handshake happens in the first reads and writes.
  std::unique_ptr<Channel> make_channel(FileDescriptor socket) const;

 private:
  const std::filesystem::path certificate_;
  const std::filesystem::path key_;
  mutable std::mutex mutex_;
  std::shared_ptr<ssl_ctx_st> context_;
};

}  // namespace blindfuse::http
