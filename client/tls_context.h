// The servers that a client trusts, and TLS sessions with them.
#pragma once

#include <openssl/ssl.h>

#include <memory>
#include <string>

#include "client/patience.h"

namespace blindfuse {

struct SslFree {
  void operator()(SSL* ssl) const { SSL_free(ssl); }
};
using SslPointer = std::unique_ptr<SSL, SslFree>;

// The outcome of an attempt to read, write or shake hands: `done` bytes, or the event to wait for.
struct SocketAttempt {
  ssize_t done = -1;   // 0: the end; -1: it failed, or it has to wait
  short wait_for = 0;  // events of poll()
};

// Calls one of OpenSSL's functions that move bytes, and returns the outcome. OpenSSL requires an
// empty queue of errors before each call: an error that the thread's owner left there would look
// like one of this call.
template <class Call>
SocketAttempt tls_attempt(SSL* ssl, Call call);

class TlsContext {
 public:
  // Trusts the certificates of this file (PEM), or the system's if it is empty. Throws InputError
  // if it cannot be read or holds none.
  explicit TlsContext(const std::string& ca_file);

  // Makes a TLS handshake with `host`, a name or an address, over a non-blocking socket. Returns
  // null if that failed, was given up, or was not done at `until`. verify_result is then the error
  // of the server's certificate, or X509_V_OK. `patience` outlives the returned session, which asks
  // it at every read. Throws InputError for a name that TLS cannot send.
  SslPointer connect(int socket, const std::string& host, Patience& patience,
                     Deadline::TimePoint until, long& verify_result) const;

 private:
  struct ContextFree {
    void operator()(SSL_CTX* context) const { SSL_CTX_free(context); }
  };
  std::unique_ptr<SSL_CTX, ContextFree> context_;
};

SocketAttempt tls_result(SSL* ssl, int result);
void clear_tls_errors();

template <class Call>
SocketAttempt tls_attempt(SSL* ssl, Call call) {
  clear_tls_errors();
  return tls_result(ssl, call());
}

}  // namespace blindfuse
