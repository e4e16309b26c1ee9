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
class ClientImpl;
struct Request;
}  // namespace httplib

namespace blindfuse {

// Keeps its connection open between requests. Follows no redirects, sends no cookies, asks for no
// compression. Throws ProtocolViolation for an answer with too long a head.
class HttpTransport : public Transport {
 public:
  // Connects on the first request. While it waits for the server, asks `keep_waiting` several times
  // a second whether to; when not, the request throws Cancelled. Throws BadInput when ca_file
  // cannot be read.
  HttpTransport(Url url, const HttpOptions& options, std::function<bool()> keep_waiting = {});
  ~HttpTransport() override;

  HttpReply get(const std::string& path, uint64_t first_byte, BodyReceiver& receiver) override;
  HttpReply post(const std::string& path, std::span<const uint8_t> body,
                 BodyReceiver& receiver) override;
  bool sends_api_key() const override { return !options_.api_key.empty(); }

 private:
  HttpReply send(httplib::Request& request, BodyReceiver& receiver);

  const Url url_;
  const HttpOptions options_;
  Patience patience_;           // of the request under way
  std::exception_ptr refused_;  // what a callback threw, carried past the library
  std::unique_ptr<httplib::ClientImpl> client_;
};

}  // namespace blindfuse
