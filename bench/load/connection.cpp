#include "bench/load/connection.h"

#include <blindfuse/errors.h>

#include <algorithm>
#include <boost/asio/connect.hpp>
#include <boost/asio/redirect_error.hpp>
#include <boost/asio/ssl/host_name_verification.hpp>
#include <boost/asio/write.hpp>
#include <boost/beast/http/error.hpp>
#include <charconv>
#include <limits>

#include "src/base/errors.h"

namespace blindfuse::load {
namespace {

namespace asio = boost::asio;
namespace http = boost::beast::http;
using boost::system::error_code;

constexpr size_t kReadBytesMax = 65'536;

// The first of the host's addresses that a server listens at.
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

ResponseReader::ResponseReader(bool keep_body) : keep_body_(keep_body) {
  // None, but Boost 1.74 refuses every Content-Length when it is told so with boost::none, and says
  // it only where a head comes without a byte of its body.
  body_limit(std::numeric_limits<uint64_t>::max());
  eager(true);
}

void ResponseReader::on_field_impl(http::field name, Text, Text value, error_code&) {
  if (name != http::field::retry_after) return;
  uint64_t number = 0;
  const auto [end, error] = std::from_chars(value.begin(), value.end(), number);
  if (error == std::errc() && end == value.end()) retry_after_s = number;
}

size_t ResponseReader::on_body_impl(Text bytes, error_code& error) {
  error = {};
  if (keep_body_) body.append(bytes.data(), bytes.size());
  return bytes.size();
}

Connection::Connection(asio::io_context& io, Endpoint& endpoint)
    : endpoint_(endpoint), socket_(io) {}

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

Awaitable<size_t> Connection::receive() {
  const auto room = input_.prepare(read_bytes_);
  auto token = asio::redirect_error(use_awaitable, error_);
  return tls_ ? tls_->async_read_some(room, token) : socket_.async_read_some(room, token);
}

bool Connection::take(ResponseReader& response, size_t count) {
  input_.commit(count);
  response.byte_count += count;
  if (count == read_bytes_) read_bytes_ = std::min(2 * read_bytes_, kReadBytesMax);
  if (error_ == asio::error::eof && response.got_some()) {
    response.put_eof(error_);
  } else if (!error_) {
    input_.consume(response.put(input_.data(), error_));
    if (error_ == http::error::need_more) return false;
  }
  if (error_) throw boost::system::system_error(error_);
  if (!response.is_done()) return false;
  // What follows an answer belongs to nothing.
  if (!response.keep_alive() || input_.size() > 0) close();
  return true;
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
