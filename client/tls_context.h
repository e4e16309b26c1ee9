// Which servers a client trusts, and TLS sessions with them.
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

// What an attempt to read, write or shake hands came to: `done` bytes, or what to wait for.
struct SocketAttempt {
  ssize_t done = -1;   // 0: the end; -1: it failed, or it has to wait
  short wait_for = 0;  // events of poll()
};

// Calls one of OpenSSL's functions that move bytes, and says what it came to. OpenSSL asks for an
// empty queue of errors before each: one that the thread's owner left there would look like ours.
template <class Call>
SocketAttempt tls_attempt(SSL* ssl, Call call);

class TlsContext {
 public:
  // Trusts the certificates of this file (PEM), or the system's when it is empty. Throws InputError
  // when it cannot be read or holds none.
  explicit TlsContext(const std::string& ca_file);

  // Shakes hands with `host`, a name or an address, over a socket that does not block: null when
  // that failed, was given up, or took until `until`. verify_result is then what is wrong with the
  // server's certificate, or X509_V_OK. `patience` outlives what is returned, which asks it
  // whenever it reads. Throws InputError for a name that TLS cannot ask for.
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
