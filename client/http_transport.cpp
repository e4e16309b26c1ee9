#include "client/http_transport.h"

#include <blindfuse/errors.h>
#include <netdb.h>
#include <netinet/in.h>
#include <pthread.h>

#include <algorithm>
#include <charconv>
#include <csignal>
#include <cstdlib>
#include <ctime>
#include <initializer_list>
#include <memory>
#include <string_view>
#include <utility>
#include <vector>

#include "client/connection.h"
#include "client/http_response.h"
#include "src/base/base64.h"
#include "src/base/errors.h"
#include "src/base/utf8.h"
#include "src/system/file.h"

namespace blindfuse {
namespace {

struct Setting {
  const char* name;  // of the option or the variable
  std::string_view value;
};

// The first of these variables that is set. As in other programs, an empty one is not.
std::optional<Setting> first_set(std::initializer_list<const char*> variables) {
  for (const char* name : variables) {
    const char* const value = std::getenv(name);
    if (value != nullptr && *value != '\0') return Setting{name, value};
  }
  return std::nullopt;
}

bool is_loopback(const std::string& host) {
  if (host == "localhost") return true;
  addrinfo numeric{};
  numeric.ai_flags = AI_NUMERICHOST;  // asks no name service
  addrinfo* found = nullptr;
  if (getaddrinfo(host.c_str(), nullptr, &numeric, &found) != 0) return false;
  const std::unique_ptr<addrinfo, decltype(&freeaddrinfo)> address(found, freeaddrinfo);
  if (found->ai_family == AF_INET) {
    const auto* const ipv4 = reinterpret_cast<const sockaddr_in*>(found->ai_addr);
    return ntohl(ipv4->sin_addr.s_addr) >> 24 == 127;
  }
  const in6_addr& ipv6 = reinterpret_cast<const sockaddr_in6*>(found->ai_addr)->sin6_addr;
  return IN6_IS_ADDR_LOOPBACK(&ipv6) || (IN6_IS_ADDR_V4MAPPED(&ipv6) && ipv6.s6_addr[12] == 127);
}

// True if a list such as "example.org, .internal" or "*" has this host, or a domain that it is in.
bool lists(std::string_view list, std::string_view host) {
  constexpr std::string_view kSeparators = ", \t";
  for (;;) {
    list.remove_prefix(std::min(list.find_first_not_of(kSeparators), list.size()));
    if (list.empty()) return false;
    std::string_view entry = list.substr(0, list.find_first_of(kSeparators));
    list.remove_prefix(entry.size());
    if (entry == "*") return true;
    if (entry.starts_with('.')) entry.remove_prefix(1);
    if (entry.starts_with('[') && entry.ends_with(']')) entry = entry.substr(1, entry.size() - 2);
    if (entry.empty() || entry.size() > host.size()) continue;
    const std::string_view end = host.substr(host.size() - entry.size());
    const bool is_whole =
        entry.size() == host.size() || host[host.size() - entry.size() - 1] == '.';
    if (is_whole && equal_ignoring_case(end, entry)) return true;
  }
}

[[noreturn]] void fail(const Setting& setting, const std::string& why) {
  throw InputError(std::string(setting.name) + " " + why +
                   "; name an HTTP proxy as http://HOST:PORT, or http://USER:PASSWORD@HOST:PORT");
}

std::string undo_percent_encoding(std::string_view text, const Setting& setting) {
  std::string result;
  while (!text.empty()) {
    unsigned code = static_cast<unsigned char>(text.front());
    size_t size = 1;
    if (text.front() == '%') {
      const std::string_view digits = text.substr(1, 2);
      const auto [end, error] = std::from_chars(digits.begin(), digits.end(), code, 16);
      if (digits.size() != 2 || end != digits.end())
        fail(setting, "has a % without two hex digits");
      size = 3;
    }
    result += static_cast<char>(code);
    text.remove_prefix(size);
  }
  return result;
}

Proxy parse_proxy(const Setting& setting) {
  std::string_view rest = setting.value;
  if (const size_t scheme_end = rest.find("://"); scheme_end != std::string_view::npos) {
    const std::string_view scheme = rest.substr(0, scheme_end);
    if (!equal_ignoring_case(scheme, "http")) {
      std::string why =
          "names a proxy that this client cannot use (" + std::string(scheme) + "://)";
      if (equal_ignoring_case(scheme.substr(0, 5), "socks")) {
        why += ". Tor's HTTP proxy is at its HTTPTunnelPort";
      }
      fail(setting, why);
    }
    rest.remove_prefix(scheme_end + 3);
  }
  while (rest.ends_with('/')) rest.remove_suffix(1);
  Proxy proxy;
  if (const size_t at = rest.rfind('@'); at != std::string_view::npos) {
    proxy.credentials = undo_percent_encoding(rest.substr(0, at), setting);
    // A user without a password (RFC 7617, section 2).
    if (proxy.credentials.find(':') == std::string::npos) proxy.credentials += ':';
    rest.remove_prefix(at + 1);
  }
  const size_t bracket = rest.starts_with('[') ? rest.find(']') : 0;
  if (rest.find(':', std::min(bracket, rest.size())) == std::string_view::npos) {
    fail(setting, "names a proxy without a port");
  }
  Url url;
  try {
    url = parse_url("http://" + std::string(rest));
  } catch (const InputError&) {
    fail(setting, "is not the address of a proxy");
  }
  if (!url.prefix.empty()) fail(setting, "names a proxy with a path");
  proxy.host = url.host;
  proxy.port = url.port;
  proxy.name = "the proxy http://" + std::string(rest) + " (" + setting.name + ")";
  return proxy;
}

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

// The Host header has no port where it is the scheme's own (RFC 9110, section 7.2).
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

// Returns the proxy that `option` (--proxy) names, or that the environment names if it is empty:
// http_proxy, https_proxy or HTTPS_PROXY, by the server's scheme; then all_proxy or ALL_PROXY,
// unless no_proxy or NO_PROXY lists the server's host. Returns nothing for a host of this machine
// (localhost, 127.0.0.0/8, ::1). Throws InputError if the proxy is of a kind that clients cannot
// use.
std::optional<Proxy> proxy_for(const Url& server, const std::string& option) {
  if (is_loopback(server.host)) return std::nullopt;
  if (!option.empty()) return parse_proxy({"the option --proxy", option});
  // Programs for CGI set HTTP_PROXY to a header of a request, so it has no meaning here.
  std::optional<Setting> setting =
      server.secure ? first_set({"https_proxy", "HTTPS_PROXY"}) : first_set({"http_proxy"});
  if (!setting) setting = first_set({"all_proxy", "ALL_PROXY"});
  if (!setting) return std::nullopt;
  const std::optional<Setting> direct = first_set({"no_proxy", "NO_PROXY"});
  if (direct && lists(direct->value, server.host)) return std::nullopt;
  return parse_proxy(*setting);
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

bool is_api_key(std::string_view text) {
  return !text.empty() && std::all_of(text.begin(), text.end(), [](char c) {
    constexpr std::string_view kMarks = "-._~+/=";
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
           kMarks.find(c) != std::string_view::npos;
  });
}

std::string read_api_key(const std::filesystem::path& file) {
  constexpr uint64_t kFileBytesMax = 4096;
  std::string key = read_text_file(file, kFileBytesMax);
  key.resize(std::min(key.find_first_of("\r\n"), key.size()));
  if (!is_api_key(key)) {
    throw InputError(file.string() + ": its first line is not an API key");
  }
  return key;
}

}  // namespace blindfuse
