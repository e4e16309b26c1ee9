#include "bench/load/connection.h"

#include <blindfuse/errors.h>

#include <boost/asio/connect.hpp>
#include <boost/asio/ssl/host_name_verification.hpp>
#include <boost/asio/write.hpp>
#include <boost/beast/http/parser.hpp>
#include <boost/beast/http/read.hpp>
#include <boost/beast/http/string_body.hpp>
#include <charconv>
#include <limits>

#include "src/base/errors.h"

namespace blindfuse::load {
namespace {

namespace asio = boost::asio;
namespace http = boost::beast::http;
using boost::system::error_code;

// Returns the first of the host's addresses at which a server listens.
asio::ip::tcp::endpoint look_up(const Url& url) {
  asio::io_context io;
  asio::ip::tcp::resolver resolver(io);
  error_code error;
  const auto found = resolver.resolve(url.host, std::to_string(url.port), error);
  if (error) throw ConnectionError("cannot find " + url.host + ": " + error.message());
  asio::ip::tcp::socket attempt(io);
  const auto answering = asio::connect(attempt, found, error);
  return error ? found.begin()->endpoint() : answering;
}

asio::ssl::context tls_context(const std::string& ca_file) {
  asio::ssl::context tls(asio::ssl::context::tls_client);
  SSL_CTX_set_min_proto_version(tls.native_handle(), TLS1_2_VERSION);
  tls.set_verify_mode(asio::ssl::verify_peer);
  error_code error;
  if (ca_file.empty()) {
    tls.set_default_verify_paths(error);
  } else {
    tls.load_verify_file(ca_file, error);
  }
  if (error) throw InputError("cannot read the trusted certificates " + ca_file);
  return tls;
}

}  // namespace

Endpoint::Endpoint(const Url& url, const std::string& ca_file, const std::string& from)
    : host_(url.host), address_(look_up(url)) {
  if (!from.empty()) {
    error_code error;
    const auto address = asio::ip::make_address(from, error);
    if (error) throw UsageError("--from " + from + " is not an address");
    from_ = asio::ip::tcp::endpoint(address, 0);
  }
  if (url.secure) tls_.emplace(tls_context(ca_file));
}

Awaitable<void> Connection::open() {
  close();
  tls_.reset();
  input_.clear();
  if (endpoint_.from_) {
    socket_.open(endpoint_.from_->protocol());
    socket_.bind(*endpoint_.from_);
  }
  co_await socket_.async_connect(endpoint_.address_, use_awaitable);
  socket_.set_option(asio::ip::tcp::no_delay(true));
  if (!endpoint_.tls_) co_return;
  tls_ = std::make_unique<asio::ssl::stream<Socket&>>(socket_, *endpoint_.tls_);
  error_code is_name;
  asio::ip::make_address(endpoint_.host_, is_name);
  if (is_name) SSL_set_tlsext_host_name(tls_->native_handle(), endpoint_.host_.c_str());
  tls_->set_verify_callback(asio::ssl::host_name_verification(endpoint_.host_));
  co_await tls_->async_handshake(asio::ssl::stream_base::client, use_awaitable);
}

template <typename Stream>
Awaitable<Response> Connection::ask_over(Stream& stream, std::string_view request) {
  co_await asio::async_write(stream, asio::buffer(request.data(), request.size()), use_awaitable);
  http::response_parser<http::string_body> parser;
  // There is no limit, but Boost 1.74 refuses every Content-Length when it is told so with
  // boost::none.
  parser.body_limit(std::numeric_limits<uint64_t>::max());
  Response response;
  response.byte_count = co_await http::async_read(stream, input_, parser, use_awaitable);
  auto& message = parser.get();
  response.status = message.result_int();
  const std::string retry(message[http::field::retry_after]);
  uint64_t number = 0;
  const auto [end, error] = std::from_chars(retry.data(), retry.data() + retry.size(), number);
  if (!retry.empty() && error == std::errc() && *end == '\0') response.retry_after_s = number;
  response.body = std::move(message.body());
  // No request is outstanding, so bytes after the response are an error of the server.
  if (!message.keep_alive() || input_.size() > 0) close();
  co_return response;
}

Awaitable<Response> Connection::ask(std::string_view request) {
  if (tls_) co_return co_await ask_over(*tls_, request);
  co_return co_await ask_over(socket_, request);
}

bool Connection::has_input() {
  char byte = 0;
  return recv(socket_.native_handle(), &byte, 1, MSG_PEEK | MSG_DONTWAIT) >= 0 ||
         (errno != EAGAIN && errno != EWOULDBLOCK);
}

void Connection::close() {
  error_code ignored;
  socket_.close(ignored);
}

}  // namespace blindfuse::load
