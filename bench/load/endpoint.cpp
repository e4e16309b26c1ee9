#include "bench/load/endpoint.h"

#include <blindfuse/errors.h>
#include <netdb.h>

#include <cstring>

namespace blindfuse::load {

Endpoint::Endpoint(Url url, const std::string& ca_file) : url_(std::move(url)) {
  look_up();
  if (url_.secure) set_up_tls(ca_file);
}

std::string Endpoint::host_and_port() const {
  const std::string host =
      url_.host.find(':') == std::string::npos ? url_.host : "[" + url_.host + "]";
  return url_.port == (url_.secure ? 443 : 80) ? host : host + ":" + std::to_string(url_.port);
}

void Endpoint::look_up() {
  addrinfo hints{};
  hints.ai_socktype = SOCK_STREAM;
  addrinfo* found = nullptr;
  const int error =
      getaddrinfo(url_.host.c_str(), std::to_string(url_.port).c_str(), &hints, &found);
  if (error != 0) {
    throw ConnectionTrouble("cannot find " + url_.host + ": " + gai_strerror(error));
  }
  std::memcpy(&address_, found->ai_addr, found->ai_addrlen);
  address_bytes_ = found->ai_addrlen;
  freeaddrinfo(found);
}

void Endpoint::set_up_tls(const std::string& ca_file) {
  tls_.reset(SSL_CTX_new(TLS_client_method()));
  if (!tls_) throw EngineTrouble("cannot set up TLS");
  SSL_CTX_set_min_proto_version(tls_.get(), TLS1_2_VERSION);
  SSL_CTX_set_verify(tls_.get(), SSL_VERIFY_PEER, nullptr);
  SSL_CTX_set_mode(tls_.get(), SSL_MODE_ENABLE_PARTIAL_WRITE | SSL_MODE_ACCEPT_MOVING_WRITE_BUFFER);
  const int trusted = ca_file.empty() ? SSL_CTX_set_default_verify_paths(tls_.get())
                                      : SSL_CTX_load_verify_file(tls_.get(), ca_file.c_str());
  if (trusted != 1) throw BadInput("cannot read the trusted certificates " + ca_file);
}

}  // namespace blindfuse::load
