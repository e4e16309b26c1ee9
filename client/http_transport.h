// HTTP and HTTPS, by cpp-httplib.
#pragma once

#include <chrono>
#include <memory>
#include <string>

#include "client/transport.h"
#include "client/url.h"

namespace httplib {
class ClientImpl;
struct Request;
}  // namespace httplib

namespace blindfuse {

struct HttpOptions {
  std::chrono::seconds timeout{300};  // for any one read or write; a server may compute for long
  std::string ca_file;                // trusted certificates (PEM); empty: the system's
};

// Keeps its connection open between requests. Follows no redirects, sends no cookies, asks for no
// compression. Throws ProtocolViolation for an answer with too long a head.
class HttpTransport : public Transport {
 public:
  // Connects on the first request. Throws BadInput when ca_file cannot be read.
  HttpTransport(Url url, const HttpOptions& options);
  ~HttpTransport() override;

  HttpReply get(const std::string& path, uint64_t first_byte, BodyReceiver& receiver) override;
  HttpReply post(const std::string& path, std::span<const uint8_t> body,
                 BodyReceiver& receiver) override;

 private:
  HttpReply send(httplib::Request& request, BodyReceiver& receiver);

  const Url url_;
  const HttpOptions options_;
  bool head_too_long_ = false;  // of the last answer
  std::unique_ptr<httplib::ClientImpl> client_;
};

}  // namespace blindfuse
