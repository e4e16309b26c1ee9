#include "client/tls_context.h"

#include <blindfuse/errors.h>
#include <openssl/err.h>
#include <openssl/x509v3.h>
#include <poll.h>

#include <filesystem>
#include <new>

namespace blindfuse {
namespace {

// The certificate has to be for this host; RFC 6066 has no server names that are addresses.
bool expect(SSL* ssl, const std::string& host) {
  if (X509_VERIFY_PARAM_set1_ip_asc(SSL_get0_param(ssl), host.c_str()) == 1) return true;
  SSL_set_hostflags(ssl, X509_CHECK_FLAG_NO_PARTIAL_WILDCARDS);
  return SSL_set1_host(ssl, host.c_str()) == 1 && SSL_set_tlsext_host_name(ssl, host.c_str()) == 1;
}

// OpenSSL does not return while records come that are not for its caller, such as requests to shake
// hands again, and session tickets. A server can send them without end, so Patience is asked before
// each of OpenSSL's own reads.
long ask_patience(BIO* bio, int operation, const char*, size_t, int, long, int result, size_t*) {
  if (operation != BIO_CB_READ) return result;
  if (reinterpret_cast<Patience*>(BIO_get_callback_arg(bio))->may_go_on()) return result;
  BIO_clear_retry_flags(bio);
  return -1;
}

void read_with(Patience& patience, SSL* ssl) {
  BIO* const bio = SSL_get_rbio(ssl);
  BIO_set_callback_arg(bio, reinterpret_cast<char*>(&patience));
  BIO_set_callback_ex(bio, ask_patience);
}

}  // namespace

void clear_tls_errors() { ERR_clear_error(); }

SocketAttempt tls_result(SSL* ssl, int result) {
  if (result > 0) return {.done = result};
  switch (SSL_get_error(ssl, result)) {
    case SSL_ERROR_WANT_READ:
      return {.wait_for = POLLIN};
    case SSL_ERROR_WANT_WRITE:
      return {.wait_for = POLLOUT};
    case SSL_ERROR_ZERO_RETURN:
      return {.done = 0};
    default:
      return {};
  }
}

TlsContext::TlsContext(const std::string& ca_file) : context_(SSL_CTX_new(TLS_client_method())) {
  if (!context_) throw std::bad_alloc();
  SSL_CTX_set_min_proto_version(context_.get(), TLS1_2_VERSION);
  SSL_CTX_set_verify(context_.get(), SSL_VERIFY_PEER, nullptr);
  SSL_CTX_set_mode(context_.get(), SSL_MODE_AUTO_RETRY | SSL_MODE_ENABLE_PARTIAL_WRITE |
                                       SSL_MODE_ACCEPT_MOVING_WRITE_BUFFER);
  if (ca_file.empty()) {
    SSL_CTX_set_default_verify_paths(context_.get());
    return;
  }
  if (!std::filesystem::is_regular_file(ca_file)) {
    throw InputError("cannot read " + ca_file + ", the file of trusted certificates");
  }
  if (SSL_CTX_load_verify_locations(context_.get(), ca_file.c_str(), nullptr) != 1) {
    throw InputError("cannot read " + ca_file +
                     ", the file of trusted certificates: it holds none in the format PEM");
  }
  // The file may hold an intermediate authority or the server's own certificate, without its root.
  X509_VERIFY_PARAM_set_flags(SSL_CTX_get0_param(context_.get()), X509_V_FLAG_PARTIAL_CHAIN);
}

SslPointer TlsContext::connect(int socket, const std::string& host, Patience& patience,
                               Deadline::TimePoint until, long& verify_result) const {
  verify_result = X509_V_OK;
  ERR_clear_error();
  SslPointer ssl(SSL_new(context_.get()));
  if (!ssl || SSL_set_fd(ssl.get(), socket) != 1) throw std::bad_alloc();
  if (!expect(ssl.get(), host)) {
    throw InputError("TLS has no servers of the name \"" + host + "\"; check the address");
  }
  read_with(patience, ssl.get());
  const Patience::Limit limit(patience, until, GaveUp::kNothingCame);
  for (;;) {
    if (!patience.may_go_on()) return nullptr;
    const SocketAttempt made = tls_attempt(ssl.get(), [&] { return SSL_connect(ssl.get()); });
    if (made.done > 0) return ssl;
    if (made.wait_for == 0) {
      verify_result = SSL_get_verify_result(ssl.get());
      return nullptr;
    }
    pollfd polled = {socket, made.wait_for, 0};
    if (!patience.wait({&polled, 1}, until, GaveUp::kNothingCame)) return nullptr;
  }
}

}  // namespace blindfuse
