// Where the load goes: a server's address, looked up once, and what TLS needs.
#pragma once

#include <openssl/ssl.h>
#include <sys/socket.h>

#include <memory>
#include <string>

#include "client/url.h"

namespace blindfuse::load {

class Endpoint {
 public:
  // Throws ConnectionTrouble when the host has no address, BadInput when ca_file (empty: the
  // system's certificates) cannot be read.
  Endpoint(Url url, const std::string& ca_file);

  const Url& url() const { return url_; }
  const sockaddr* address() const { return reinterpret_cast<const sockaddr*>(&address_); }
  socklen_t address_bytes() const { return address_bytes_; }
  // Null for http.
  SSL_CTX* tls() const { return tls_.get(); }
  // As the Host header has it.
  std::string host_and_port() const;

 private:
  void look_up();
  void set_up_tls(const std::string& ca_file);

  Url url_;
  sockaddr_storage address_{};
  socklen_t address_bytes_ = 0;
  std::unique_ptr<SSL_CTX, decltype(&SSL_CTX_free)> tls_{nullptr, &SSL_CTX_free};
};

}  // namespace blindfuse::load
