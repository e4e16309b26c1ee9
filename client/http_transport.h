// HTTP and HTTPS, by cpp-httplib.
#pragma once

#include <blindfuse/client_options.h>

#include <exception>
#include <functional>
#include <memory>
#include <string>

#include "client/patience.h"
#include "client/transport.h"
#include "client/url.h"

namespace httplib {
struct Request;
struct Response;
}  // namespace httplib

namespace blindfuse {

class BoundedHttpClient;
class TlsContext;

// Keeps its connection open between requests, unless the server says that it will close it. Follows
// no redirects, sends no cookies, and asks for no compression. Throws ProtocolError for an answer
// with too long a head.
class HttpTransport : public Transport {
 public:
  // Connects at the first request. While it waits for the server, calls `keep_waiting` several
  // times a second. If that returns false, the request throws CancelledError (except while the
  // system's name service looks for the server, which nothing here can stop). Throws InputError if
  // ca_file cannot be read.
  HttpTransport(Url url, const HttpOptions& options, std::function<bool()> keep_waiting = {});
  ~HttpTransport() override;

  HttpReply get(const std::string& path, uint64_t first_byte, BodyReceiver& receiver) override;
  HttpReply post(const std::string& path, std::span<const uint8_t> body,
                 BodyReceiver& receiver) override;
  bool sends_api_key() const override { return options_.api_key.has_value(); }

 private:
  struct Answer;

  HttpReply send(httplib::Request& request, BodyReceiver& receiver);
  // False if no complete answer came.
  bool send_once(httplib::Request& request, BodyReceiver& receiver, Answer& answer);
  [[noreturn]] void throw_trouble(const Answer& answer) const;

  const Url url_;
  const HttpOptions options_;
  Deadline own_deadline_;       // of each request, where set_deadline() gave none
  Patience patience_;           // of the request under way
  std::exception_ptr refused_;  // what a callback threw, carried past the library
  std::unique_ptr<TlsContext> tls_;
  std::unique_ptr<BoundedHttpClient> client_;
};

}  // namespace blindfuse
