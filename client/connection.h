// A TCP connection to a server, with or without TLS, which requests share. The host may have
// several addresses, some of them dead (RFC 8305).
#pragma once

#include <openssl/ssl.h>
#include <sys/socket.h>

#include <chrono>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "client/deadline.h"
#include "src/system/file.h"
#include "src/system/process_token.h"

namespace blindfuse {

// The time from one attempt to the next, to another address, if neither has an outcome.
inline constexpr std::chrono::milliseconds kNextAddressAfter{250};
// The limit for connecting, from the last attempt that began; and for a TLS handshake.
inline constexpr std::chrono::seconds kConnectTimeout{20};

struct SocketAddress {
  sockaddr_storage storage{};
  socklen_t size = 0;
};

// The addresses of a host in the order in which to try them. If there are none, `failure` says why.
std::vector<SocketAddress> addresses_of(const std::string& host, uint16_t port,
                                        std::string& failure);

// Connects to the first address that answers. Attempts run side by side: each begins
// kNextAddressAfter after the one before it, or when one fails. The sockets do not block, so that
// nothing waits but Patience. Returns a closed descriptor if no address answers, or if `patience`
// gave up. In the first case, `failure` says why.
FileDescriptor connect_tcp(std::span<const SocketAddress> addresses, Patience& patience,
                           std::string& failure);

struct SslFree {
  void operator()(SSL* ssl) const { SSL_free(ssl); }
};
using SslPointer = std::unique_ptr<SSL, SslFree>;

// The servers that a client trusts.
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

// One thread at a time. A forked child leaves the connection to its parent: it sends nothing over
// it, and closing its copy does not end the connection.
class Connection {
 public:
  // `patience` outlives this. A wait for any byte ends after `idle`.
  Connection(std::chrono::seconds idle, Patience& patience) : idle_(idle), patience_(patience) {}
  ~Connection() { close(); }
  Connection(const Connection&) = delete;
  Connection& operator=(const Connection&) = delete;

  // Takes a connected socket, which does not block.
  void open(FileDescriptor socket);
  // Makes a TLS handshake with `host`. Returns false if that failed, was given up, or took too
  // long. verify_result is then the error of the server's certificate, or X509_V_OK.
  bool secure(const TlsContext& tls, const std::string& host, long& verify_result);
  bool is_open() const { return socket_.is_open(); }
  void close();

  // Called before each request. Closes a kept connection that cannot carry a request, because the
  // server closed it or sent bytes without a request.
  void begin_request();
  // True if the last request used a kept connection and no byte of an answer came. The server has
  // probably closed the connection before it read the request.
  bool was_lost() const { return was_kept_ && !got_byte_; }

  // Returns the number of bytes, 0 at the end, and -1 if the connection broke or `patience` gave
  // up.
  ssize_t read(char* bytes, size_t size);
  // False if not all was sent.
  bool write(std::string_view bytes);

 private:
  template <class Attempt>
  ssize_t complete(Attempt attempt);

  const std::chrono::seconds idle_;
  Patience& patience_;
  FileDescriptor socket_;
  SslPointer ssl_;                                 // null without TLS
  ProcessToken opened_ = ProcessToken::current();  // the process that the connection belongs to
  bool was_kept_ = false;
  bool got_byte_ = false;  // of the answer
};

}  // namespace blindfuse
