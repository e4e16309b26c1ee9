#include "client/connection.h"

#include <blindfuse/errors.h>
#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <openssl/err.h>
#include <openssl/x509v3.h>
#include <poll.h>
#include <sys/socket.h>

#include <algorithm>
#include <cerrno>
#include <climits>
#include <cstring>
#include <filesystem>
#include <memory>
#include <new>
#include <utility>

namespace blindfuse {
namespace {

std::string words_for(int error) {
  switch (error) {
    case ECONNREFUSED:
      return "connection refused; check the port, and that the server runs";
    case ENETUNREACH:
    case EHOSTUNREACH:
      return "there is no route to it; check the address and this machine's network";
    case ETIMEDOUT:
      return "no answer in " + std::to_string(kConnectTimeout.count()) + " s; check the address";
    default:
      return std::string(std::strerror(error)) + "; check the address";
  }
}

std::string words_for_name(int error) {
  if (error == EAI_NONAME) return "no host has this name; check the address";
  return std::string("its name cannot be looked up (") +
         (error == EAI_SYSTEM ? std::strerror(errno) : gai_strerror(error)) +
         "); check the address, and this machine's network";
}

// Attempts to connect that have no outcome yet.
class Attempts {
 public:
  explicit Attempts(int& error) : error_(error) {}

  bool empty() const { return sockets_.empty(); }
  std::span<pollfd> polled() { return polled_; }

  // Returns the socket if it is connected now.
  FileDescriptor begin(const SocketAddress& address) {
    FileDescriptor made(
        socket(address.storage.ss_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0));
    if (!made.is_open()) {
      error_ = errno;
      return {};
    }
    const int yes = 1;
    setsockopt(made.get(), IPPROTO_TCP, TCP_NODELAY, &yes, sizeof yes);
    const auto* const any_address = reinterpret_cast<const sockaddr*>(&address.storage);
    if (connect(made.get(), any_address, address.size) == 0) return made;
    if (errno == EINPROGRESS) {
      polled_.push_back({made.get(), POLLOUT, 0});
      sockets_.push_back(std::move(made));
    } else {
      error_ = errno;
    }
    return {};
  }

  // Returns an attempt that has connected, if there is one, and drops the attempts that failed.
  FileDescriptor take_connected() {
    for (size_t i = polled_.size(); i-- > 0;) {
      if (polled_[i].revents == 0) continue;
      int failure = 0;
      socklen_t size = sizeof failure;
      getsockopt(polled_[i].fd, SOL_SOCKET, SO_ERROR, &failure, &size);
      FileDescriptor done = std::move(sockets_[i]);
      if (failure == 0) return done;
      error_ = failure;
      polled_.erase(polled_.begin() + static_cast<ptrdiff_t>(i));
      sockets_.erase(sockets_.begin() + static_cast<ptrdiff_t>(i));
    }
    return {};
  }

 private:
  int& error_;  // of the last that failed
  std::vector<FileDescriptor> sockets_;
  std::vector<pollfd> polled_;  // of each socket
};

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

// The outcome of an attempt to read, write or shake hands: `done` bytes, or the event to wait for.
struct SocketAttempt {
  ssize_t done = -1;   // 0: the end; -1: it failed, or it has to wait
  short wait_for = 0;  // events of poll()
};

// Calls one of OpenSSL's functions that move bytes. OpenSSL requires an empty queue of errors
// before each call: an error that the thread's owner left there would look like one of this call.
template <class Call>
SocketAttempt tls_attempt(SSL* ssl, Call call) {
  ERR_clear_error();
  const int result = call();
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

SocketAttempt plain_result(ssize_t done, short events) {
  if (done >= 0) return {.done = done};
  const bool again = errno == EINTR || errno == EAGAIN || errno == EWOULDBLOCK;
  return {.wait_for = again ? events : short{0}};
}

int clamped(size_t size) { return static_cast<int>(std::min<size_t>(size, INT_MAX)); }

}  // namespace

std::vector<SocketAddress> addresses_of(const std::string& host, uint16_t port,
                                        std::string& failure) {
  addrinfo wanted{};
  wanted.ai_socktype = SOCK_STREAM;
  addrinfo* found = nullptr;
  if (const int error = getaddrinfo(host.c_str(), std::to_string(port).c_str(), &wanted, &found)) {
    failure = words_for_name(error);
    return {};
  }
  const std::unique_ptr<addrinfo, decltype(&freeaddrinfo)> all(found, freeaddrinfo);
  // The family of the first address and the other one take turns (RFC 8305, section 4).
  std::vector<SocketAddress> addresses[2];
  for (const addrinfo* address = found; address != nullptr; address = address->ai_next) {
    SocketAddress& copy = addresses[address->ai_family != found->ai_family].emplace_back();
    std::memcpy(&copy.storage, address->ai_addr, address->ai_addrlen);
    copy.size = address->ai_addrlen;
  }
  std::vector<SocketAddress> sorted;
  for (size_t i = 0; i < std::max(addresses[0].size(), addresses[1].size()); ++i) {
    for (const std::vector<SocketAddress>& family : addresses) {
      if (i < family.size()) sorted.push_back(family[i]);
    }
  }
  return sorted;
}

FileDescriptor connect_tcp(std::span<const SocketAddress> addresses, Patience& patience,
                           std::string& failure) {
  if (addresses.empty()) return {};
  int error = ETIMEDOUT;
  Attempts attempts(error);
  auto begun = patience.now();
  bool is_next_due = true;
  while (patience.may_go_on() && (!addresses.empty() || !attempts.empty())) {
    if (!addresses.empty() && (is_next_due || attempts.empty())) {
      begun = patience.now();
      is_next_due = false;
      FileDescriptor connected = attempts.begin(addresses.front());
      addresses = addresses.subspan(1);
      if (connected.is_open()) return connected;
      continue;
    }
    const auto until = begun + (addresses.empty() ? kConnectTimeout
                                                  : std::chrono::milliseconds(kNextAddressAfter));
    if (!patience.wait(attempts.polled(), until, GaveUp::kNothingCame)) {
      if (patience.gave_up() != GaveUp::kNothingCame) break;
      patience.give_up(GaveUp::kNot);
      if (addresses.empty()) {
        error = ETIMEDOUT;
        break;
      }
    } else {
      FileDescriptor connected = attempts.take_connected();
      if (connected.is_open()) return connected;
    }
    is_next_due = true;
  }
  failure = words_for(error);
  return {};
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

void Connection::open(FileDescriptor socket) {
  close();
  opened_ = ProcessToken::current();
  was_kept_ = false;
  socket_ = std::move(socket);
}

bool Connection::secure(const TlsContext& tls, const std::string& host, long& verify_result) {
  const auto until = patience_.now() + kConnectTimeout;
  ssl_ = tls.connect(socket_.get(), host, patience_, until, verify_result);
  return ssl_ != nullptr;
}

// A process that waits for the server may fork. Its child sends no TLS alert of its own, under the
// parent's keys and in the place of the parent's next record, and does not shut down the socket
// that both have.
void Connection::close() {
  const bool is_own = opened_.is_current();
  if (ssl_ && is_own) {
    ERR_clear_error();
    SSL_shutdown(ssl_.get());
  }
  ssl_.reset();  // sends nothing
  if (socket_.is_open() && is_own) shutdown(socket_.get(), SHUT_RDWR);
  socket_ = {};
}

void Connection::begin_request() {
  was_kept_ = is_open();
  got_byte_ = false;
  if (!was_kept_) return;
  char byte = 0;
  const SocketAttempt made =
      ssl_ ? tls_attempt(ssl_.get(), [&] { return SSL_peek(ssl_.get(), &byte, 1); })
           : plain_result(recv(socket_.get(), &byte, 1, MSG_PEEK), POLLIN);
  if (made.wait_for == 0) close();
}

template <class Attempt>
ssize_t Connection::complete(Attempt attempt) {
  for (;;) {
    if (!patience_.may_go_on()) return -1;
    const SocketAttempt made = attempt();
    if (made.wait_for == 0) return made.done;
    pollfd polled = {socket_.get(), made.wait_for, 0};
    if (!patience_.wait({&polled, 1}, patience_.now() + idle_, GaveUp::kNothingCame)) return -1;
  }
}

ssize_t Connection::read(char* bytes, size_t size) {
  const ssize_t got = complete([&] {
    return ssl_
               ? tls_attempt(ssl_.get(), [&] { return SSL_read(ssl_.get(), bytes, clamped(size)); })
               : plain_result(recv(socket_.get(), bytes, size, 0), POLLIN);
  });
  got_byte_ = got_byte_ || got > 0;
  return got;
}

bool Connection::write(std::string_view bytes) {
  while (!bytes.empty()) {
    const ssize_t sent = complete([&] {
      return ssl_ ? tls_attempt(
                        ssl_.get(),
                        [&] { return SSL_write(ssl_.get(), bytes.data(), clamped(bytes.size())); })
                  : plain_result(send(socket_.get(), bytes.data(), bytes.size(), MSG_NOSIGNAL),
                                 POLLOUT);
    });
    if (sent <= 0) return false;
    bytes.remove_prefix(static_cast<size_t>(sent));
  }
  return true;
}

}  // namespace blindfuse
