#include "bench/load/target.h"

#include <blindfuse/errors.h>

#include <sys/un.h>

// Before Asio, whose version 1.74 uses std::exchange without it.
#include <utility>

#include <boost/asio/co_spawn.hpp>
#include <boost/asio/use_future.hpp>

#include "bench/load/connection.h"
#include "client/http_transport.h"
#include "src/base/errors.h"

namespace blindfuse::load {
namespace {

namespace asio = boost::asio;

constexpr std::string_view kUnix = "unix:";

// A connection to a UNIX socket for each request: there are few.
class UnixTransport : public Transport {
 public:
  UnixTransport(const Target& target, std::string api_key, std::chrono::seconds timeout)
      : target_(target), api_key_(std::move(api_key)), timeout_(timeout) {}

  HttpReply get(const std::string& path, uint64_t first_byte, BodyReceiver& receiver) override {
    std::string lines;
    if (first_byte > 0) lines = "Range: bytes=" + std::to_string(first_byte) + "-\r\n";
    return ask("GET " + path, lines, {}, receiver);
  }

  HttpReply post(const std::string& path, std::span<const uint8_t> body,
                 BodyReceiver& receiver) override {
    return ask("POST " + path,
               "Content-Type: application/octet-stream\r\nContent-Length: " +
                   std::to_string(body.size()) + "\r\n",
               {reinterpret_cast<const char*>(body.data()), body.size()}, receiver);
  }

  bool sends_api_key() const override { return !api_key_.empty(); }

 private:
  HttpReply ask(const std::string& first_line, const std::string& lines, std::string_view body,
                BodyReceiver& receiver) {
    std::string request = first_line + " HTTP/1.1\r\nHost: " + target_.host_and_port() + "\r\n" +
                          "Connection: close\r\n" + lines;
    if (!api_key_.empty()) request += "Authorization: Bearer " + api_key_ + "\r\n";
    request += "\r\n";
    request += body;
    ResponseReader response(true);
    read_response(request, response);
    HttpReply reply;
    reply.status = response.status;
    reply.retry_after_s = response.retry_after_s;
    if (response.status == 200 || response.status == 206) {
      receiver.begin(response.status, response.body.size());
      receiver.receive(
          {reinterpret_cast<const uint8_t*>(response.body.data()), response.body.size()});
    } else {
      reply.problem = response.body.substr(0, kProblemBytesMax);
    }
    return reply;
  }

  void read_response(const std::string& request, ResponseReader& response) {
    asio::io_context io;
    Endpoint endpoint(target_, "");
    Connection connection(io, endpoint);
    auto done = asio::co_spawn(io, send(connection, request, response), asio::use_future);
    io.run_for(timeout_);
    try {
      if (io.stopped()) return done.get();
    } catch (const boost::system::system_error& error) {
      throw ConnectionError(target_.text() + ": " + error.code().message());
    }
    throw ConnectionError(target_.text() + " gave no answer in " +
                          std::to_string(timeout_.count()) + " s");
  }

  static Awaitable<void> send(Connection& connection, const std::string& request,
                              ResponseReader& response) {
    co_await connection.open();
    co_await connection.write(request);
    co_await connection.read(response);
  }

  const Target target_;
  const std::string api_key_;
  const std::chrono::seconds timeout_;
};

}  // namespace

std::string Target::host_and_port() const {
  const std::string host =
      url.host.find(':') == std::string::npos ? url.host : "[" + url.host + "]";
  return url.port == (url.secure ? 443 : 80) ? host : host + ":" + std::to_string(url.port);
}

Target parse_target(const std::string& text) {
  if (!text.starts_with(kUnix)) return {parse_url(text), ""};
  const std::string path = text.substr(kUnix.size());
  if (!path.starts_with('/') || path.size() >= sizeof sockaddr_un{}.sun_path) {
    throw UsageError("'" + text +
                     "' is no socket; write it like unix:/run/x, in 107 bytes at most");
  }
  return {parse_url("http://localhost"), path};
}

std::string api_key_of(const Options& options) {
  return options.api_key_file.empty() ? "" : read_api_key(options.api_key_file);
}

std::unique_ptr<Transport> transport_to(const Target& target, const Options& options) {
  const std::chrono::seconds timeout(options.timeout_s);
  const std::string api_key = api_key_of(options);
  if (!target.socket.empty()) return std::make_unique<UnixTransport>(target, api_key, timeout);
  HttpOptions http;
  http.timeout = timeout;
  if (!options.ca_file.empty()) http.ca_file = options.ca_file;
  if (!api_key.empty()) http.api_key = api_key;
  return std::make_unique<HttpTransport>(target.url, http);
}

}  // namespace blindfuse::load
