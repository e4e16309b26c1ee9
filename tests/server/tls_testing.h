// Certificates that a test makes, and a client that takes any.
#pragma once

#include <netinet/tcp.h>
#include <openssl/ec.h>
#include <openssl/err.h>
#include <openssl/pem.h>
#include <openssl/ssl.h>
#include <openssl/x509.h>

#include <cerrno>
#include <cstdio>
#include <filesystem>
#include <memory>
#include <stdexcept>
#include <string>

#include "tests/server/loopback_client.h"

namespace blindfuse::server_testing {

using PrivateKey = std::unique_ptr<EVP_PKEY, decltype(&EVP_PKEY_free)>;

inline PrivateKey make_key() { return {EVP_EC_gen("P-256"), &EVP_PKEY_free}; }

inline void write_key(const std::filesystem::path& path, EVP_PKEY& key,
                      const char* password = nullptr) {
  FILE* file = std::fopen(path.c_str(), "w");
  PEM_write_PrivateKey(file, &key, password ? EVP_aes_256_cbc() : nullptr, nullptr, 0, nullptr,
                       const_cast<char*>(password));
  std::fclose(file);
}

// Signed by itself, of this serial number. It is valid between these times, in seconds from now.
inline void write_certificate(const std::filesystem::path& path, EVP_PKEY& key, long serial,
                              long begin = -3600, long end = 3600) {
  const std::unique_ptr<X509, decltype(&X509_free)> certificate(X509_new(), &X509_free);
  X509_set_version(certificate.get(), 2);
  ASN1_INTEGER_set(X509_get_serialNumber(certificate.get()), serial);
  X509_gmtime_adj(X509_getm_notBefore(certificate.get()), begin);
  X509_gmtime_adj(X509_getm_notAfter(certificate.get()), end);
  X509_set_pubkey(certificate.get(), &key);
  X509_NAME* name = X509_get_subject_name(certificate.get());
  const std::string common_name = "localhost";
  X509_NAME_add_entry_by_txt(name, "CN", MBSTRING_ASC,
                             reinterpret_cast<const unsigned char*>(common_name.data()), -1, -1, 0);
  X509_set_issuer_name(certificate.get(), name);
  X509_sign(certificate.get(), &key, EVP_sha256());
  FILE* file = std::fopen(path.c_str(), "w");
  PEM_write_X509(file, certificate.get());
  std::fclose(file);
}

// A new pair of files for a server.
inline void write_certificate_and_key(const std::filesystem::path& certificate,
                                      const std::filesystem::path& key_file, long serial) {
  const PrivateKey key = make_key();
  write_key(key_file, *key);
  write_certificate(certificate, *key, serial);
}

class TlsClient : public LoopbackClient {
 public:
  // receive_bytes: as LoopbackClient's.
  explicit TlsClient(const std::string& url, int version = TLS1_3_VERSION, int receive_bytes = 0)
      : LoopbackClient(url, receive_bytes),
        context_(SSL_CTX_new(TLS_client_method()), &SSL_CTX_free),
        ssl_(nullptr, &SSL_free) {
    SSL_CTX_set_max_proto_version(context_.get(), version);
    SSL_CTX_set_security_level(context_.get(), 0);
    SSL_CTX_set_min_proto_version(context_.get(), TLS1_VERSION);
    ssl_.reset(SSL_new(context_.get()));
    SSL_set_fd(ssl_.get(), fd());
    ERR_clear_error();
    if (SSL_connect(ssl_.get()) != 1) throw std::runtime_error("the handshake failed");
  }

  long serial() const {
    const std::unique_ptr<X509, decltype(&X509_free)> certificate(
        SSL_get1_peer_certificate(ssl_.get()), &X509_free);
    return ASN1_INTEGER_get(X509_get_serialNumber(certificate.get()));
  }
  // Certificates that the server sent.
  int chain_length() const { return sk_X509_num(SSL_get_peer_cert_chain(ssl_.get())); }
  // Leaves as clients do. The last record of TLS and the end of the connection come in one packet.
  void leave() {
    const int yes = 1;
    setsockopt(fd(), IPPROTO_TCP, TCP_CORK, &yes, sizeof yes);
    SSL_shutdown(ssl_.get());
    close();
  }
  // Whether the server says that it has finished, rather than just leaves: what tells a client that
  // nothing was cut off.
  bool is_finished() {
    char byte = 0;
    ERR_clear_error();
    return SSL_get_error(ssl_.get(), SSL_read(ssl_.get(), &byte, 1)) == SSL_ERROR_ZERO_RETURN;
  }

 protected:
  ssize_t write_some(const char* bytes, size_t size) override {
    ERR_clear_error();
    const int put = SSL_write(ssl_.get(), bytes, static_cast<int>(size));
    errno = EIO;
    return put > 0 ? put : -1;
  }
  ssize_t read_some(char* bytes, size_t size) override {
    ERR_clear_error();
    const int got = SSL_read(ssl_.get(), bytes, static_cast<int>(size));
    errno = EIO;
    return got > 0 ? got : -1;
  }

 private:
  const std::unique_ptr<SSL_CTX, decltype(&SSL_CTX_free)> context_;
  std::unique_ptr<SSL, decltype(&SSL_free)> ssl_;
};

}  // namespace blindfuse::server_testing
