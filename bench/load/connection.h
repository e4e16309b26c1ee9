// A connection to the server that is loaded, over TCP or TLS, for coroutines. Includes Boost.Asio,
// so few files include this.
#pragma once

// Before Asio, whose version 1.74 uses std::exchange without it.
#include <utility>

#include <boost/asio/awaitable.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/ssl/context.hpp>
#include <boost/asio/ssl/stream.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <boost/beast/core/flat_buffer.hpp>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "client/url.h"

namespace blindfuse::load {

// All coroutines run in one io_context. An executor that may be any costs a microsecond
// a request.
using Executor = boost::asio::io_context::executor_type;
template <typename T>
using Awaitable = boost::asio::awaitable<T, Executor>;
inline constexpr boost::asio::use_awaitable_t<Executor> use_awaitable;

// A server's address, resolved once, and the data that TLS needs.
class Endpoint {
 public:
  // Connects from the address `from`, if it is not empty. Throws ConnectionError when the host has
  // no address, UsageError when `from` is none, and InputError when ca_file (empty: the system's
  // certificates) cannot be read.
  Endpoint(const Url& url, const std::string& ca_file, const std::string& from = "");

 private:
  friend class Connection;

  const std::string host_;
  boost::asio::ip::tcp::endpoint address_;
  std::optional<boost::asio::ip::tcp::endpoint> from_;
  std::optional<boost::asio::ssl::context> tls_;
};

struct Response {
  int status = 0;
  std::optional<uint64_t> retry_after_s;
  std::string body;
  uint64_t byte_count = 0;  // of head and body
};

// One request at a time.
class Connection {
 public:
  Connection(boost::asio::io_context& io, Endpoint& endpoint) : endpoint_(endpoint), socket_(io) {}

  bool is_open() const { return socket_.is_open(); }
  // Functions that return an awaitable throw boost::system::system_error when the connection fails.
  // Open it again then.
  Awaitable<void> open();
  // Sends a request, which stays where it is until then, and reads the response. Closes the
  // connection when the server will close it.
  Awaitable<Response> ask(std::string_view request);

  // True if the server has sent something, or closed the connection.
  bool has_input();

  // A request that waits then fails.
  void close();

 private:
  using Socket = boost::asio::basic_stream_socket<boost::asio::ip::tcp, Executor>;

  template <typename Stream>
  Awaitable<Response> ask_over(Stream& stream, std::string_view request);

  Endpoint& endpoint_;
  Socket socket_;
  std::unique_ptr<boost::asio::ssl::stream<Socket&>> tls_;
  boost::beast::flat_buffer input_;
};

}  // namespace blindfuse::load
