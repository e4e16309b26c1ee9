#include "client/http_transport.h"

#include <blindfuse/errors.h>
#include <pthread.h>

#include <csignal>
#include <ctime>
#include <string_view>
#include <utility>
#include <vector>

#include "client/http_response.h"
#include "client/tcp_connect.h"
#include "src/base/base64.h"

namespace blindfuse {
namespace {

// Keeps a server that hangs up from killing the program: writing to its socket raises SIGPIPE,
// which a library must not turn off for the whole process.
class SigpipeBlocked {
 public:
  SigpipeBlocked() {
    sigemptyset(&sigpipe_);
    sigaddset(&sigpipe_, SIGPIPE);
    sigset_t pending;
    sigpending(&pending);
    was_pending_ = sigismember(&pending, SIGPIPE) == 1;
    pthread_sigmask(SIG_BLOCK, &sigpipe_, &before_);
  }
  ~SigpipeBlocked() {
    const timespec now{};
    if (!was_pending_) sigtimedwait(&sigpipe_, nullptr, &now);
    pthread_sigmask(SIG_SETMASK, &before_, nullptr);
  }
  SigpipeBlocked(const SigpipeBlocked&) = delete;
  SigpipeBlocked& operator=(const SigpipeBlocked&) = delete;

 private:
  sigset_t sigpipe_{};
  sigset_t before_{};
  bool was_pending_ = false;
};

std::string certificate_trouble(const std::string& at, const HttpOptions& options, long fault) {
  const std::string certificate = "the certificate of " + at;
  if (fault == X509_V_ERR_HOSTNAME_MISMATCH || fault == X509_V_ERR_IP_ADDRESS_MISMATCH) {
    return certificate + " is for another name; check the address";
  }
  return certificate + " is not trusted (" + X509_verify_cert_error_string(fault) + "); " +
         (options.ca_file ? "is the file named with --ca-file that of its authority?"
                          : "name the file of its authority with --ca-file");
}

std::string bracketed_host(const Url& url) {
  return url.host.find(':') == std::string::npos ? url.host : "[" + url.host + "]";
}

// As RFC 9110 has it: without the port where it is that of the scheme.
std::string host_header(const Url& url) {
  const bool is_default = url.port == (url.secure ? 443 : 80);
  return bracketed_host(url) + (is_default ? "" : ":" + std::to_string(url.port));
}

std::string refusal_by(const Proxy& proxy, int status, const std::string& target) {
  switch (status) {
    case 403:
      return proxy.name + " does not allow connections to " + target + " (status 403)";
    case 407:
      return proxy.name + (proxy.credentials.empty()
                               ? " asks for a user and a password (status 407): name it as "
                                 "http://USER:PASSWORD@HOST:PORT"
                               : " does not accept its user and password (status 407); check them");
    case 502:
    case 503:
    case 504:
      return proxy.name + " cannot reach " + target + " (status " + std::to_string(status) +
             "): check the address, and that the server runs";
    default:
      return proxy.name + " answered CONNECT " + target + " with status " + std::to_string(status) +
             "; is it an HTTP proxy?";
  }
}

}  // namespace

HttpTransport::HttpTransport(Url url, const HttpOptions& options,
                             std::function<bool()> keep_waiting)
    : url_(std::move(url)),
      at_(url_.text()),
      options_(options),
      proxy_(proxy_for(url_, options_.proxy.value_or(""))),
      own_deadline_(options.timeout),
      patience_(std::move(keep_waiting)),
      // A file that was named has to be there, even if this server needs none.
      tls_(url_.secure || options_.ca_file
               ? std::make_unique<TlsContext>(options_.ca_file.value_or(""))
               : nullptr),
      connection_(options.timeout, patience_) {}

HttpTransport::~HttpTransport() {
  const SigpipeBlocked blocked;  // closing a TLS connection writes to it
  connection_.close();
}

std::string HttpTransport::head(const char* method, const std::string& path) const {
  std::string head = std::string(method) + " " + url_.prefix + path +
                     " HTTP/1.1\r\nHost: " + host_header(url_) +
                     "\r\nUser-Agent: blindfuse-client\r\nAccept: */*\r\n"
                     "Accept-Encoding: identity\r\n";
  if (options_.api_key) head += "Authorization: Bearer " + *options_.api_key + "\r\n";
  return head;
}

void HttpTransport::close_connection() {
  const SigpipeBlocked blocked;
  connection_.close();
}

HttpReply HttpTransport::get(const std::string& path, uint64_t first_byte, BodyReceiver& receiver) {
  std::string head = this->head("GET", path);
  if (first_byte > 0) head += "Range: bytes=" + std::to_string(first_byte) + "-\r\n";
  return send(head + "\r\n", {}, true, receiver);
}

HttpReply HttpTransport::post(const std::string& path, std::span<const uint8_t> body,
                              BodyReceiver& receiver) {
  const std::string head =
      this->head("POST", path) +
      "Content-Type: application/octet-stream\r\nContent-Length: " + std::to_string(body.size()) +
      "\r\n\r\n";
  return send(head, body, false, receiver);
}

HttpReply HttpTransport::send(const std::string& head, std::span<const uint8_t> body,
                              bool may_be_repeated, BodyReceiver& receiver) {
  const Deadline::Call call(deadline() != nullptr ? *deadline() : own_deadline_);
  patience_.begin(this->call());
  const SigpipeBlocked blocked;
  for (;;) {
    try {
      return exchange(head, body, receiver);
    } catch (const KeptConnectionClosed&) {
      connection_.close();
      if (!may_be_repeated) throw;  // otherwise over a new connection
    } catch (...) {
      connection_.close();
      throw;
    }
  }
}

HttpReply HttpTransport::exchange(const std::string& head, std::span<const uint8_t> body,
                                  BodyReceiver& receiver) {
  connection_.begin_request();
  if (!connection_.is_open()) connect();
  // A server may answer before it has read all, and close. Its answer says more than this failure.
  static_cast<void>(connection_.write(head) &&
                    connection_.write({reinterpret_cast<const char*>(body.data()), body.size()}));
  HttpReply reply;
  if (!read_response(connection_, patience_, at_, receiver, reply)) throw_trouble(reply);
  return reply;
}

void HttpTransport::connect() {
  const std::string host = proxy_ ? proxy_->host : url_.host;
  std::string failure;
  FileDescriptor socket = connect_tcp(
      addresses_of(host, proxy_ ? proxy_->port : url_.port, failure), patience_, failure);
  if (!socket.is_open()) {
    throw_if_over();
    throw ConnectionError("cannot connect to " + (proxy_ ? proxy_->name : at_) + ": " + failure);
  }
  connection_.open(std::move(socket));
  if (proxy_) open_tunnel();
  if (!url_.secure) return;
  long verify_result = X509_V_OK;
  if (connection_.secure(*tls_, url_.host, verify_result)) return;
  throw_if_over();
  if (verify_result != X509_V_OK) {
    throw ConnectionError(certificate_trouble(at_, options_, verify_result));
  }
  throw ConnectionError("no TLS connection to " + at_ + ": is it an https server?");
}

void HttpTransport::open_tunnel() {
  const std::string target = bracketed_host(url_) + ":" + std::to_string(url_.port);
  std::string head = "CONNECT " + target + " HTTP/1.1\r\nHost: " + target + "\r\n";
  if (const std::string& credentials = proxy_->credentials; !credentials.empty()) {
    head +=
        "Proxy-Authorization: Basic " +
        encode_base64({reinterpret_cast<const uint8_t*>(credentials.data()), credentials.size()}) +
        "\r\n";
  }
  static_cast<void>(connection_.write(head + "\r\n"));
  HttpReply reply;
  const bool is_whole = read_tunnel_response(connection_, patience_, proxy_->name, reply);
  throw_if_over();
  if (!is_whole) {
    throw ConnectionError(proxy_->name + " sent no complete HTTP answer to CONNECT " + target +
                          "; check its address");
  }
  if (reply.status / 100 != 2) throw ConnectionError(refusal_by(*proxy_, reply.status, target));
  if (!connection_.is_open()) {
    throw ConnectionError(proxy_->name + " sent bytes before the server could; check its address");
  }
}

void HttpTransport::throw_if_over() {
  if (patience_.gave_up() == GaveUp::kStopped) patience_.throw_stopped();
  if (patience_.gave_up() == GaveUp::kCallOver) throw ConnectionError(call().trouble(at_));
}

void HttpTransport::throw_trouble(const HttpReply& reply) {
  throw_if_over();
  if (patience_.gave_up() == GaveUp::kHeadLate) {
    throw ConnectionError("the head of an answer from " + at_ + " began, and was not whole in " +
                          std::to_string(kHeadTimeout.count()) + " s; try again later");
  }
  if (patience_.gave_up() == GaveUp::kNothingCame) {
    throw ConnectionError("nothing came for " + std::to_string(options_.timeout.count()) +
                          " s from " + at_ + "; try again later, or wait longer with --timeout");
  }
  if (connection_.was_lost()) {
    throw KeptConnectionClosed("the connection to " + at_ +
                               " closed before an answer came; try again");
  }
  if (reply.status != 0) {
    throw ConnectionError("the connection to " + at_ + " broke; try again later");
  }
  throw ConnectionError("the connection to " + at_ + " closed, and no HTTP answer came: is it " +
                        (url_.secure ? "" : "https, or ") +
                        "another service? If not, try again later");
}

}  // namespace blindfuse
