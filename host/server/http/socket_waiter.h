// Waits in a connection's coroutine until its socket is ready, a deadline has passed, or something
// else has woken it. Includes Boost.Asio, so few files include this.
#pragma once

// Before Asio, whose version 1.74 uses std::exchange without it.
#include <utility>

#include <boost/asio/any_io_executor.hpp>
#include <boost/asio/awaitable.hpp>
#include <boost/asio/posix/stream_descriptor.hpp>
#include <boost/asio/steady_timer.hpp>
#include <chrono>
#include <memory>

#include "host/server/http/channel.h"

namespace blindfuse::http {

// All calls are made on the strand. One coroutine waits.
class SocketWaiter : public std::enable_shared_from_this<SocketWaiter> {
 public:
  using Clock = std::chrono::steady_clock;
  using WaitType = boost::asio::posix::stream_descriptor::wait_type;
  template <typename T>
  using Awaitable = boost::asio::awaitable<T>;

  enum class Wake {
    kReady,     // the socket is
    kTimeout,   // the deadline has passed
    kSpurious,  // by wake(), perhaps for an earlier wait
    kEnded,     // by end(), now or before
  };

  // The socket stays its owner's. The owner calls close() before it closes the socket.
  SocketWaiter(boost::asio::any_io_executor strand, int socket);
  SocketWaiter(const SocketWaiter&) = delete;
  SocketWaiter& operator=(const SocketWaiter&) = delete;

  Awaitable<Wake> wait(WaitType what, Clock::time_point deadline);
  // Waits for the event that a channel needs. Returns true if the channel may try again, false at
  // the deadline or the end.
  Awaitable<bool> wait_for(Channel::Status status, Clock::time_point deadline);
  // Lets other connections use the thread.
  Awaitable<void> yield();

  void wake();
  // Ends the current wait, and all later ones at once.
  void end();
  bool has_ended() const { return ended_; }
  // Ends waits, and gives up the socket. Further calls, on any thread, do nothing.
  void close();

 private:
  void set_deadline(Clock::time_point deadline);
  void start_timer();
  void on_timer();

  const boost::asio::any_io_executor strand_;
  boost::asio::posix::stream_descriptor socket_;
  boost::asio::steady_timer timer_;
  Clock::time_point deadline_ = Clock::time_point::max();
  bool timer_runs_ = false;
  bool overdue_ = false;
  bool ended_ = false;
  bool closed_ = false;
};

}  // namespace blindfuse::http
