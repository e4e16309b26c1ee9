// A client's connection: a coroutine that reads from top to bottom, and the interface between the
// server and the service that answers its requests. Includes Boost.Asio, so few files include this.
#pragma once

#include <array>
#include <atomic>
#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <string>
#include <utility>

#include "host/server/http/channel.h"
#include "host/server/http/connections.h"
#include "host/server/http/request_head.h"
#include "host/server/http/response.h"
#include "host/server/http/server.h"
#include "host/server/http/socket_waiter.h"

namespace blindfuse::http {

using Clock = std::chrono::steady_clock;
template <typename T>
using Awaitable = SocketWaiter::Awaitable<T>;

class Connection;

// Thrown to a service that waits while its client leaves: the response has no reader any more.
struct ClientLeft : std::exception {
  const char* what() const noexcept override { return "the client has left"; }
};

// A service. Any thread, several at a time.
class Handler {
 public:
  virtual ~Handler() = default;

  // Answers the request whose head has arrived. It waits only by `co_await` of the connection's
  // functions. Throws only ClientLeft.
  virtual Awaitable<Response> answer(Connection& client) = 0;
  // The response to bytes that are not a request. The connection ends with it. Never throws.
  virtual Response refuse(const Error& error, const std::string& peer) = 0;
};

// Limits log messages that clients can cause as often as they like. Any thread.
class LogLimit {
 public:
  explicit LogLimit(Clock::duration interval = std::chrono::minutes(1)) : interval_(interval) {}

  // Called for each occurrence of an event. Returns the number of occurrences since the last that
  // was logged, this one included, or nothing if it is not to be logged.
  std::optional<uint64_t> count(Clock::time_point now = Clock::now()) {
    const std::lock_guard lock(mutex_);
    ++count_;
    if (logged_ && now - *logged_ < interval_) return std::nullopt;
    logged_ = now;
    return std::exchange(count_, 0);
  }

 private:
  const Clock::duration interval_;
  std::mutex mutex_;
  uint64_t count_ = 0;
  std::optional<Clock::time_point> logged_;
};

// The data that the connections of a server share.
struct Context {
  Handler& handler;
  const Options options;
  Connections connections = {};
  LogLimit given_up_bodies{};
  LogLimit cut_responses{};
  std::array<std::atomic<uint64_t>, kCutCount> cuts = {};
  std::atomic<uint64_t> sent_bytes = 0;
  std::atomic<bool> stopping = false;

  void note_cut(Cut why, size_t count = 1) { cuts[static_cast<size_t>(why)] += count; }
  Load load() const;
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

  // A service calls and awaits these functions during Handler::answer(), in this order.

  const std::string& peer() const { return peer_; }  // the client's address
  const RequestHead& head() const { return *head_; }
  // The number of bytes of the request's body that have come.
  uint64_t body_bytes() const { return body_ ? body_->byte_count() : body_bytes_; }

  // The whole body, which may have bytes_max. It may be written to, and stays in memory until
  // release_body(). If all bodies that arrive have more than all_max, the connection is ended whose
  // body has been arriving longest. Throws Error: 413 for a longer body, 400 for a malformed one,
  // 408 for one that does not arrive in time; and ClientLeft.
  Awaitable<std::span<char>> read_body(uint64_t bytes_max, uint64_t all_max);
  void release_body();

  // Takes room for a response of this many bytes of memory, until it is sent. Memory that a
  // response lends (Body) does not count. If all responses have more than all_max, the connections
  // are ended whose responses have stood still longest while they are sent; before that, `check` is
  // called, which throws if the response will not be made. Throws Error (503) if none is being
  // sent, and ClientLeft.
  Awaitable<void> reserve_response(uint64_t bytes, uint64_t all_max,
                                   const std::function<void()>& check);

  // Returns true once is_done() is true, which may have become so before a call of waker(), and
  // false at the deadline. Throws ClientLeft.
  Awaitable<bool> wait_until(const std::function<bool()>& is_done, Clock::time_point deadline);
  // May be called from any thread, and also after the connection has gone.
  std::function<void()> waker();

 private:
  Awaitable<void> serve();
  Awaitable<bool> serve_request();
  Awaitable<bool> read_head();
  Awaitable<void> write_continue();
  Awaitable<bool> write(Output output);
  Awaitable<void> linger();

  Channel::Result write_some(const Output& output);
  void discard_urgent_byte() const;
  bool may_be_sending() const;
  bool has_unread_bytes() const;
  bool has_events(short events) const;
  void bound_bodies(uint64_t all_max);

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

  // The state of the request that is being answered.
  std::optional<RequestHead> head_;
  std::optional<BodyReader> body_;
  uint64_t body_bytes_ = 0;  // once the body has been released
  SocketWaiter::WaitType left_by_ = SocketWaiter::WaitType::wait_read;  // how its leaving shows
};

}  // namespace blindfuse::http
