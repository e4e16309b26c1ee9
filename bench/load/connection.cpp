#include "bench/load/connection.h"

#include <blindfuse/errors.h>

#include <boost/asio/connect.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/local/stream_protocol.hpp>
#include <boost/asio/redirect_error.hpp>
#include <boost/asio/ssl/host_name_verification.hpp>
#include <boost/asio/write.hpp>
#include <boost/beast/http/basic_parser.hpp>
#include <boost/beast/http/error.hpp>
#include <charconv>

#include "src/base/errors.h"

namespace blindfuse::load {
namespace {

namespace asio = boost::asio;
namespace http = boost::beast::http;
using boost::system::error_code;

constexpr size_t kInputBytes = 65'536;

// The first of the host's addresses that a server listens at.
asio::ip::tcp::endpoint look_up(const Url& url) {
  asio::io_context io;
  asio::ip::tcp::resolver resolver(io);
  error_code error;
  const auto found = resolver.resolve(url.host, std::to_string(url.port), error);
  if (error) throw ConnectionTrouble("cannot find " + url.host + ": " + error.message());
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
  if (error) throw BadInput("cannot read the trusted certificates " + ca_file);
  return tls;
}

std::optional<uint64_t> number_in(std::string_view text) {
  uint64_t number = 0;
  const auto [end, error] = std::from_chars(text.begin(), text.end(), number);
  if (error != std::errc() || end != text.end()) return std::nullopt;
  return number;
}

// What a load needs of a response. Beast's own parser keeps all fields, which costs as much as the
// rest of a request.
class ResponseParser : public http::basic_parser<false> {
 public:
  int status = 0;
  std::optional<uint64_t> retry_after_s;
  std::string body;

 private:
  using Text = boost::beast::string_view;

  void on_request_impl(http::verb, Text, Text, int, error_code&) override {}
  void on_response_impl(int code, Text, int, error_code&) override { status = code; }
  void on_field_impl(http::field name, Text, Text value, error_code&) override {
    if (name == http::field::retry_after) retry_after_s = number_in({value.data(), value.size()});
  }
  void on_header_impl(error_code&) override {}
  void on_body_init_impl(const boost::optional<uint64_t>&, error_code& error) override {
    error = {};
  }
  size_t on_body_impl(Text bytes, error_code& error) override {
    error = {};
    body.append(bytes.data(), bytes.size());
    return bytes.size();
  }
  void on_chunk_header_impl(uint64_t, Text, error_code&) override {}
  size_t on_chunk_body_impl(uint64_t, Text bytes, error_code& error) override {
    return on_body_impl(bytes, error);
  }
  void on_finish_impl(error_code& error) override { error = {}; }
};

}  // namespace

Endpoint::Endpoint(const Target& target, const std::string& ca_file) : host_(target.url.host) {
  if (target.socket.empty()) {
    address_ = look_up(target.url);
  } else {
    address_ = asio::local::stream_protocol::endpoint(target.socket);
  }
  if (target.url.secure) tls_.emplace(tls_context(ca_file));
}

Connection::Connection(asio::io_context& io, Endpoint& endpoint)
    : endpoint_(endpoint), socket_(io) {}

Awaitable<void> Connection::open() {
  close();
  tls_.reset();
  input_.clear();
  co_await socket_.async_connect(endpoint_.address_, use_awaitable);
  error_code not_for_unix_sockets;
  socket_.set_option(asio::ip::tcp::no_delay(true), not_for_unix_sockets);
  if (!endpoint_.tls_) co_return;
  tls_.emplace(socket_, *endpoint_.tls_);
  error_code is_name;
  asio::ip::make_address(endpoint_.host_, is_name);
  if (is_name) SSL_set_tlsext_host_name(tls_->native_handle(), endpoint_.host_.c_str());
  tls_->set_verify_callback(asio::ssl::host_name_verification(endpoint_.host_));
  co_await tls_->async_handshake(asio::ssl::stream_base::client, use_awaitable);
}

Awaitable<void> Connection::write(std::string_view bytes) {
  const auto buffer = asio::buffer(bytes.data(), bytes.size());
  if (tls_) {
    co_await asio::async_write(*tls_, buffer, use_awaitable);
  } else {
    co_await asio::async_write(socket_, buffer, use_awaitable);
  }
}

size_t Connection::write_now(std::string_view bytes) {
  if (tls_) return 0;
  const ssize_t sent =
      send(socket_.native_handle(), bytes.data(), bytes.size(), MSG_DONTWAIT | MSG_NOSIGNAL);
  return sent < 0 ? 0 : static_cast<size_t>(sent);
}

Awaitable<Response> Connection::read() {
  ResponseParser parser;
  parser.body_limit(boost::none);
  parser.eager(true);
  Response response;
  while (!parser.is_done()) {
    const auto room = input_.prepare(kInputBytes);
    error_code error;
    auto token = asio::redirect_error(use_awaitable, error);
    size_t count = 0;
    if (tls_) {
      count = co_await tls_->async_read_some(room, token);
    } else {
      count = co_await socket_.async_read_some(room, token);
    }
    input_.commit(count);
    response.bytes += count;
    if (error == asio::error::eof && parser.got_some()) {
      parser.put_eof(error);
    } else if (!error) {
      input_.consume(parser.put(input_.data(), error));
      if (error == http::error::need_more) error = {};
    }
    if (error) throw boost::system::system_error(error);
  }
  response.status = parser.status;
  response.retry_after_s = parser.retry_after_s;
  response.body = std::move(parser.body);
  // What follows an answer belongs to nothing.
  if (!parser.keep_alive() || input_.size() > 0) close();
  co_return response;
}

Awaitable<void> Connection::wait_for_input() {
  co_await socket_.async_wait(asio::socket_base::wait_read, use_awaitable);
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
