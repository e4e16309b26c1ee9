// One client's connection: a coroutine that reads from top to bottom. Includes Boost.Asio, so few
// files include this.
#pragma once

// Before Asio, whose version 1.74 uses std::exchange without it.
#include <utility>

#include <atomic>
#include <boost/asio/any_io_executor.hpp>
#include <boost/asio/awaitable.hpp>
#include <boost/asio/posix/stream_descriptor.hpp>
#include <boost/asio/steady_timer.hpp>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "host/server/http/body_reader.h"
#include "host/server/http/channel.h"
#include "host/server/http/connections.h"
#include "host/server/http/handler.h"
#include "host/server/http/options.h"
#include "host/server/http/output.h"

namespace blindfuse::http {

// What the connections of a server share.
struct Context {
  Handler& handler;
  const Options options;
  Connections connections = {};
  std::atomic<bool> stopping = false;
};

class Connection : public std::enable_shared_from_this<Connection> {
 public:
  // `strand` runs what belongs to this connection, one thing at a time. The context outlives it.
  Connection(boost::asio::any_io_executor strand, std::unique_ptr<Channel> channel,
             std::string peer, Context& context);
  ~Connection();
  Connection(const Connection&) = delete;
  Connection& operator=(const Connection&) = delete;

  // Serves the client until the connection ends. Once.
  static void spawn(std::shared_ptr<Connection> connection);

 private:
  template <typename T>
  using Awaitable = boost::asio::awaitable<T>;

  // Whatever ends a wait.
  enum class Woken { kReady, kOverdue, kEnded, kInVain };

  Awaitable<void> serve();
  Awaitable<bool> serve_request();
  Awaitable<std::optional<RequestHead>> read_head();
  Awaitable<bool> read_body(BodyReader& body);
  Awaitable<bool> ask(Exchange& exchange, const RequestHead& head, std::optional<Error>& error,
                      uint64_t& body_bytes);
  Awaitable<bool> await_answer(Exchange& exchange, Clock::time_point deadline);
  Awaitable<bool> send(const RequestHead* head, Response response, bool last);
  Awaitable<bool> write(Output output);
  Awaitable<void> linger();

  Awaitable<Woken> wait(boost::asio::posix::stream_descriptor::wait_type what,
                        Clock::time_point deadline);
  Awaitable<bool> wait_for(Channel::Status status, Clock::time_point deadline);
  Awaitable<void> yield();

  Channel::Status receive();
  Channel::Result write_some(const Output& output);
  std::string_view received() const { return {input_.get() + begin_, end_ - begin_}; }
  void release_input();
  bool may_be_sending() const;
  bool has_hung_up() const;
  void bound_bodies();

  void set_deadline(Clock::time_point deadline);
  void start_timer();
  void on_timer();
  void on_notice(Connections::Notice notice);

  // First, so that it is the last to go: who waits until all have gone destroys what they use.
  std::optional<Connections::Place> place_;
  Context& context_;
  const boost::asio::any_io_executor strand_;
  const std::unique_ptr<Channel> channel_;
  const std::string peer_;
  boost::asio::posix::stream_descriptor socket_;  // the channel's, for waiting
  boost::asio::steady_timer timer_;

  std::unique_ptr<char[]> input_;  // what has arrived, while there is any
  size_t begin_ = 0;
  size_t end_ = 0;

  unsigned request_count_ = 0;
  bool unread_ = false;  // a part of a body may still be coming
  Clock::time_point deadline_ = Clock::time_point::max();
  bool timer_runs_ = false;
  bool overdue_ = false;
  bool ended_ = false;
};

}  // namespace blindfuse::http
