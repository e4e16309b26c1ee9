// One client's connection: a coroutine that reads from top to bottom. Includes Boost.Asio, so few
// files include this.
#pragma once

#include <atomic>
#include <memory>
#include <optional>
#include <string>

#include "host/server/http/body_reader.h"
#include "host/server/http/channel.h"
#include "host/server/http/connections.h"
#include "host/server/http/handler.h"
#include "host/server/http/input.h"
#include "host/server/http/log_limit.h"
#include "host/server/http/options.h"
#include "host/server/http/output.h"
#include "host/server/http/socket_waiter.h"

namespace blindfuse::http {

// The data that the connections of a server share.
struct Context {
  Handler& handler;
  const Options options;
  Connections connections = {};
  LogLimit given_up_bodies{};
  LogLimit cut_responses{};
  std::atomic<bool> stopping = false;
};

class Connection : public std::enable_shared_from_this<Connection> {
 public:
  // `strand` runs all work of this connection, one thing at a time. The context outlives the
  // connection.
  Connection(boost::asio::any_io_executor strand, std::unique_ptr<Channel> channel,
             std::string peer, Context& context);
  ~Connection();
  Connection(const Connection&) = delete;
  Connection& operator=(const Connection&) = delete;

  // Serves the client until the connection ends. Once.
  static void spawn(std::shared_ptr<Connection> connection);

 private:
  template <typename T>
  using Awaitable = SocketWaiter::Awaitable<T>;

  Awaitable<void> serve();
  Awaitable<bool> serve_request();
  Awaitable<std::optional<RequestHead>> read_head();
  Awaitable<bool> read_body(BodyReader& body);
  Awaitable<bool> ask(Exchange& exchange, const RequestHead& head, std::optional<Error>& error,
                      uint64_t& body_bytes);
  Awaitable<bool> hand_over_body(Exchange& exchange, const RequestHead& head,
                                 std::optional<Error>& error, uint64_t& body_bytes,
                                 std::optional<Clock::time_point>& deadline);
  Awaitable<Connections::Room> reserve_response(Exchange& exchange, uint64_t bytes);
  Awaitable<bool> await_answer(Exchange& exchange, const RequestHead& head,
                               Clock::time_point deadline);
  Awaitable<bool> send(const RequestHead* head, Response response, bool last);
  Awaitable<bool> write_continue();
  Awaitable<bool> write(Output output);
  Awaitable<void> linger();

  Channel::Result write_some(const Output& output);
  void discard_urgent_byte() const;
  bool may_be_sending() const;
  bool has_unread_bytes() const;
  bool has_events(short events) const;
  void bound_bodies();

  template <typename Do>
  static void post(const std::shared_ptr<Connection>& connection, Do what);
  void on_notice(Connections::Notice notice);

  // The first member, so that it is destroyed last: a thread that waits for the end of all
  // connections then destroys the objects that they use.
  std::optional<Connections::Place> place_;
  Context& context_;
  const boost::asio::any_io_executor strand_;
  const std::unique_ptr<Channel> channel_;
  const std::string peer_;
  const std::shared_ptr<SocketWaiter> waiter_;
  Input input_;
  unsigned request_count_ = 0;
  bool unread_ = false;  // a part of a body may still be coming
};

}  // namespace blindfuse::http
