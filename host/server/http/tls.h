// TLS for clients: a certificate and its key, which can be replaced while connections are open.
#pragma once

#include <atomic>
#include <ctime>
#include <filesystem>
#include <memory>
#include <mutex>

#include "host/server/http/channel.h"
#include "src/system/file.h"

struct ssl_ctx_st;

namespace blindfuse::http {

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
