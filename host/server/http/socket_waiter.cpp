#include "host/server/http/socket_waiter.h"

#include <boost/asio/post.hpp>
#include <boost/asio/redirect_error.hpp>
#include <boost/asio/use_awaitable.hpp>

namespace blindfuse::http {

namespace asio = boost::asio;

SocketWaiter::SocketWaiter(asio::any_io_executor strand, int socket)
    : strand_(std::move(strand)), socket_(strand_, socket), timer_(strand_) {}

SocketWaiter::Awaitable<SocketWaiter::Wake> SocketWaiter::wait(WaitType what,
                                                               Clock::time_point deadline) {
  set_deadline(deadline);
  boost::system::error_code error;
  if (!ended_) co_await socket_.async_wait(what, asio::redirect_error(asio::use_awaitable, error));
  if (ended_) co_return Wake::kEnded;
  if (overdue_) co_return Wake::kTimeout;
  co_return error ? Wake::kSpurious : Wake::kReady;
}

SocketWaiter::Awaitable<bool> SocketWaiter::wait_for(Channel::Status status,
                                                     Clock::time_point deadline) {
  const auto what = status == Channel::Status::kWantWrite
                        ? asio::posix::stream_descriptor::wait_write
                        : asio::posix::stream_descriptor::wait_read;
  const Wake wake = co_await wait(what, deadline);
  co_return wake == Wake::kReady || wake == Wake::kSpurious;
}

SocketWaiter::Awaitable<void> SocketWaiter::yield() {
  co_await asio::post(strand_, asio::use_awaitable);
}

void SocketWaiter::wake() {
  if (!closed_) socket_.cancel();
}

void SocketWaiter::end() {
  if (closed_) return;
  ended_ = true;
  socket_.cancel();
  timer_.cancel();
}

void SocketWaiter::close() {
  if (std::exchange(closed_, true)) return;
  ended_ = true;
  timer_.cancel();
  socket_.release();
}

// When a deadline is put off, the timer runs on, and checks at its end whether it is time.
void SocketWaiter::set_deadline(Clock::time_point deadline) {
  overdue_ = false;
  deadline_ = deadline;
  if (!timer_runs_ || deadline_ < timer_.expiry()) start_timer();
}

void SocketWaiter::start_timer() {
  timer_runs_ = true;
  timer_.expires_at(deadline_);
  timer_.async_wait([self = shared_from_this()](const boost::system::error_code& error) {
    if (!error) self->on_timer();
  });
}

void SocketWaiter::on_timer() {
  timer_runs_ = false;
  if (ended_) return;
  if (Clock::now() < deadline_) return start_timer();
  overdue_ = true;
  socket_.cancel();
}

}  // namespace blindfuse::http
