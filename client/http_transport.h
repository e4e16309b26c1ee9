// HTTP and HTTPS over one connection.
#pragma once

#include <blindfuse/client_options.h>

#include <cstdint>
#include <filesystem>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "client/connection.h"
#include "client/deadline.h"
#include "client/transport.h"
#include "client/url.h"

namespace blindfuse {

// The HTTP proxy through which a client reaches a server.
struct Proxy {
  std::string host;
  uint16_t port = 0;
  std::string credentials;  // "user:password", or nothing

  // "the proxy http://127.0.0.1:3128 (https_proxy)", with the option or variable that names it
  std::string name;
};

// Keeps its connection open between requests, unless the server says that it will close it. Follows
// no redirects, sends no cookies, and asks for no compression. Throws ProtocolError for an answer
// that breaks HTTP/1.1 or has too long a head.
//
// Through a proxy, the connection is a tunnel that CONNECT opens, for http and https alike. The
// proxy looks up the server's name.
class HttpTransport : public Transport {
 public:
  // Connects at the first request. While it waits for the server, calls `keep_waiting` several
  // times a second. If that returns false, the request throws CancelledError (except while the
  // system's name service looks for the server, which nothing here can stop). Throws InputError if
  // ca_file cannot be read, or if the proxy is of a kind that clients cannot use.
  HttpTransport(Url url, const HttpOptions& options, std::function<bool()> keep_waiting = {});
  ~HttpTransport() override;

  HttpReply get(const std::string& path, uint64_t first_byte, BodyReceiver& receiver) override;
  HttpReply post(const std::string& path, std::span<const uint8_t> body,
                 BodyReceiver& receiver) override;
  void close_connection() override;
  bool sends_api_key() const override { return options_.api_key.has_value(); }

 private:
  std::string head(const char* method, const std::string& path) const;
  HttpReply send(const std::string& head, std::span<const uint8_t> body, bool may_be_repeated,
                 BodyReceiver& receiver);
  HttpReply exchange(const std::string& head, std::span<const uint8_t> body,
                     BodyReceiver& receiver);
  void connect();
  void open_tunnel();
  void throw_if_over();
  [[noreturn]] void throw_trouble(const HttpReply& reply);
  const Deadline& call() const { return deadline() != nullptr ? *deadline() : own_deadline_; }

  const Url url_;
  const std::string at_;  // the server's address, for messages
  const HttpOptions options_;
  const std::optional<Proxy> proxy_;
  Deadline own_deadline_;  // of each request, where set_deadline() gave none
  Patience patience_;      // of the request under way
  const std::unique_ptr<TlsContext> tls_;
  Connection connection_;
};

// True if a text can be the API key that a server may require: letters, digits and -._~+/= (RFC
// 6750, section 2.1).
bool is_api_key(std::string_view text);

// Reads the first line of a file. Throws InputError if it is not an API key.
std::string read_api_key(const std::filesystem::path& file);

}  // namespace blindfuse
