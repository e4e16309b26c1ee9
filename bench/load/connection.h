// A connection to the server that is loaded, over TCP or TLS, for coroutines.
// Includes Boost.Asio, so few files include this.
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
#include <boost/beast/http/basic_parser.hpp>
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

// The parts of a response that a load needs. Beast's own parser keeps all fields, which takes as
// long as the rest of a request.
class ResponseReader : public boost::beast::http::basic_parser<false> {
 public:
  explicit ResponseReader(bool keep_body);

  int status = 0;
  std::optional<uint64_t> retry_after_s;
  std::string body;
  uint64_t byte_count = 0;  // of head and body

 private:
  using Text = boost::beast::string_view;
  using Error = boost::system::error_code;
  using Field = boost::beast::http::field;

  void on_request_impl(boost::beast::http::verb, Text, Text, int, Error&) override {}
  void on_response_impl(int code, Text, int, Error&) override { status = code; }
  void on_field_impl(Field name, Text, Text value, Error&) override;
  void on_header_impl(Error&) override {}
  void on_body_init_impl(const boost::optional<uint64_t>&, Error& error) override { error = {}; }
  size_t on_body_impl(Text bytes, Error& error) override;
  void on_chunk_header_impl(uint64_t, Text, Error&) override {}
  size_t on_chunk_body_impl(uint64_t, Text bytes, Error& error) override {
    return on_body_impl(bytes, error);
  }
  void on_finish_impl(Error& error) override { error = {}; }

  const bool keep_body_;
};

// One request at a time. What returns an awaitable throws boost::system::system_error when the
// connection fails; it has to be opened again then.
class Connection {
 public:
  Connection(boost::asio::io_context& io, Endpoint& endpoint);

  bool is_open() const { return socket_.is_open(); }
  Awaitable<void> open();

  // Sends a part of a request, which stays where it is until then.
  Awaitable<void> write(std::string_view bytes);
  // Sends what there is room for now, mostly all, and returns how many bytes that is.
  size_t write_now(std::string_view bytes);
  // Read the response to it, in two parts: wait for some bytes of it, or for the connection's end,
  // and take them. False when more are to come. The connection is closed when the server will close
  // it.
  Awaitable<size_t> receive();
  bool take(ResponseReader& response, size_t count);

  // Whether the server has sent something, or closed the connection.
  bool has_input();

  // What waits then fails.
  void close();

 private:
  using Socket = boost::asio::basic_stream_socket<boost::asio::ip::tcp, Executor>;

  Endpoint& endpoint_;
  Socket socket_;
  std::unique_ptr<boost::asio::ssl::stream<Socket&>> tls_;
  boost::beast::flat_buffer input_;
  boost::system::error_code error_;  // of receive()
  // Grows with responses: a thousand connections read into little memory, which stays in the cache.
  size_t read_bytes_ = 512;
};

}  // namespace blindfuse::load
