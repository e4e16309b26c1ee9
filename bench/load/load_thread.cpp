#include "bench/load/load_thread.h"

#include <algorithm>
#include <boost/asio/co_spawn.hpp>
#include <boost/asio/post.hpp>
#include <boost/asio/redirect_error.hpp>
#include <boost/asio/steady_timer.hpp>

namespace blindfuse::load {
namespace {

namespace asio = boost::asio;
using std::chrono::milliseconds;
using std::chrono::seconds;

constexpr milliseconds kWaitAfterFailure{100};
constexpr seconds kBusyWaitMax{60};
constexpr size_t kWaitingMax = 1'000'000;
// A server closes connections that are idle for longer than this.
constexpr seconds kIdleMin{1};
constexpr milliseconds kSlowTick{50};

double seconds_between(Clock::time_point from, Clock::time_point to) {
  return std::chrono::duration<double>(to - from).count();
}

}  // namespace

LoadThread::LoadThread(const Options& options, Endpoint& endpoint, AnswerCheck& answers,
                       Events events)
    : options_(options),
      endpoint_(endpoint),
      answers_(answers),
      events_(std::move(events)),
      random_(options.seed),
      arrivals_(options.rate.value_or(1) / options.queries_per_request, options.seed) {
  for (unsigned i = 0; i < options_.client_count(); ++i) {
    Client& client = add_client();
    if (options_.is_open_loop()) {
      free_.push_back(&client);
    } else {
      spawn(keep_asking(client));
    }
  }
  if (options_.is_open_loop()) spawn(let_arrive());
  for (unsigned i = 0; i < options_.slow_senders; ++i) spawn(send_slowly(add_client()));
  for (unsigned i = 0; i < options_.idle_connections; ++i) spawn(stay_idle(add_client()));
  spawn(close_overdue());
  thread_ = std::thread([this] {
    try {
      io_.run();
    } catch (...) {
      events_.failed(std::current_exception());
    }
  });
}

LoadThread::~LoadThread() {
  io_.stop();
  thread_.join();
}

void LoadThread::send_from(Pool pool) {
  asio::post(io_, [this, pool = std::move(pool)] {
    pool_ = pool;
    if (pool_) pool_came_.cancel();
  });
}

Window LoadThread::take_window() {
  std::promise<Window> taken;
  asio::post(io_, [this, &taken] {
    const auto now = Clock::now();
    window_.seconds = seconds_between(std::exchange(window_start_, now), now);
    window_.waiting = due_.size();
    taken.set_value(std::exchange(window_, {}));
  });
  return taken.get_future().get();
}

LoadThread::Client& LoadThread::add_client() {
  return clients_.emplace_back(Client{Connection(io_, endpoint_)});
}

void LoadThread::spawn(Awaitable<void> coroutine) {
  asio::co_spawn(io_, std::move(coroutine), [](std::exception_ptr trouble) {
    if (trouble) std::rethrow_exception(trouble);
  });
}

Awaitable<void> LoadThread::until(Clock::time_point time) {
  Timer timer(io_, time);
  co_await timer.async_wait(use_awaitable);
}

Awaitable<void> LoadThread::until_there_is_a_pool() {
  boost::system::error_code cancelled;
  while (!pool_) {
    pool_came_.expires_at(Clock::time_point::max());
    co_await pool_came_.async_wait(asio::redirect_error(use_awaitable, cancelled));
  }
}

// Closed loop.
Awaitable<void> LoadThread::keep_asking(Client& client) {
  for (;;) {
    if (!pool_) co_await until_there_is_a_pool();
    const auto now = Clock::now();
    const Clock::duration wait = co_await ask(client, now);
    if (wait > Clock::duration{}) co_await until(Clock::now() + wait);
  }
}

// Open loop: requests arrive by the clock; those that find no connection free wait for one.
Awaitable<void> LoadThread::let_arrive() {
  Clock::time_point arrival;
  for (;;) {
    if (!pool_) {
      due_.clear();
      co_await until_there_is_a_pool();
      arrival = Clock::now();
    }
    arrival += arrivals_.next_gap();
    if (arrival > Clock::now()) co_await until(arrival);
    if (due_.size() < kWaitingMax) {
      due_.push_back(arrival);
    } else {
      ++window_.given_up;
    }
    if (!free_.empty()) {
      Client& client = *free_.back();
      free_.pop_back();
      spawn(answer_arrivals(client));
    }
  }
}

Awaitable<void> LoadThread::answer_arrivals(Client& client) {
  while (pool_ && !due_.empty()) {
    const Clock::time_point due = due_.front();
    due_.pop_front();
    const Clock::duration wait = co_await ask(client, due);
    if (wait > Clock::duration{}) co_await until(Clock::now() + wait);
  }
  free_.push_back(&client);
}

// Sends the next request. Returns how long the connection then has to wait before another.
Awaitable<Clock::duration> LoadThread::ask(Client& client, Clock::time_point due) {
  const Pool pool = pool_;
  const size_t taken = pool->take();
  const size_t request = taken % pool->size();
  if (taken >= pool->size()) ++window_.resent;
  // The first, so that there is one, and by chance: every so many would be the same few of the
  // pool, again and again.
  const bool kept =
      options_.check_every > 0 && (taken == 0 || random_() % options_.check_every == 0);
  const Clock::time_point sent = Clock::now();
  client.overdue = sent + seconds(options_.timeout_s);
  Response response;
  try {
    response = co_await exchange(client, (*pool)[request].bytes, sent);
  } catch (const boost::system::system_error&) {
    client.connection.close();
    response.status = 0;
  }
  client.overdue = Clock::time_point::max();
  client.answered = Clock::now();
  if (response.status == 0) {
    ++window_.errors["connection"];
    co_return kWaitAfterFailure;
  }
  window_.bytes_down += response.bytes;
  if (response.status == 200) {
    ++window_.requests;
    window_.lookups += options_.queries_per_request;
    window_.latency.add_seconds(seconds_between(due, client.answered));
    if (kept) answers_.keep(*pool, request, std::move(response.body));
    co_return Clock::duration{};
  }
  ++window_.errors[std::to_string(response.status)];
  if (options_.epoch_changes && (response.status == 404 || response.status == 410)) {
    if (pool_ == pool) pool_ = nullptr;
    events_.epoch_gone(pool);
  }
  if (response.status != 503) co_return Clock::duration{};
  window_.refused.add_seconds(seconds_between(sent, client.answered));
  // Who is refused in an open loop is gone; the next one comes by the clock.
  if (options_.is_open_loop()) co_return Clock::duration{};
  co_return std::min(kBusyWaitMax, seconds(response.retry_after_s.value_or(1)));
}

Awaitable<Response> LoadThread::exchange(Client& client, std::string_view request,
                                         Clock::time_point now) {
  Connection& connection = client.connection;
  if (!connection.is_open() || (client.answered + kIdleMin < now && connection.has_input())) {
    if (std::exchange(client.was_open, true)) ++window_.reconnects;
    co_await connection.open();
  }
  window_.bytes_up += request.size();
  request.remove_prefix(connection.write_now(request));
  if (!request.empty()) co_await connection.write(request);
  Response response = co_await connection.read();
  co_return response;
}

// A valid request very slowly, and when it is answered, or the connection closed, another.
Awaitable<void> LoadThread::send_slowly(Client& client) {
  const double bytes_a_tick =
      options_.slow_bytes_per_second * std::chrono::duration<double>(kSlowTick).count();
  Connection& connection = client.connection;
  for (;;) {
    co_await until_there_is_a_pool();
    const Pool pool = pool_;
    std::string_view rest = (*pool)[pool->take() % pool->size()].bytes;
    Response response;
    try {
      if (!connection.is_open()) co_await connection.open();
      // The server need not wait for all of the request to refuse it.
      double allowed = 0;
      while (!rest.empty() && !connection.has_input()) {
        allowed += bytes_a_tick;
        const std::string_view piece = rest.substr(0, static_cast<size_t>(allowed));
        co_await connection.write(piece);
        allowed -= static_cast<double>(piece.size());
        rest.remove_prefix(piece.size());
        co_await until(Clock::now() + kSlowTick);
      }
      client.overdue = Clock::now() + seconds(options_.timeout_s);
      response = co_await connection.read();
      if (!rest.empty()) connection.close();
    } catch (const boost::system::system_error&) {
      connection.close();
    }
    client.overdue = Clock::time_point::max();
    ++(response.status == 200 ? window_.slow_answered : window_.slow_closed);
    co_await until(Clock::now() + kWaitAfterFailure);
  }
}

// Opened again when the server closes it.
Awaitable<void> LoadThread::stay_idle(Client& client) {
  for (;;) {
    try {
      co_await client.connection.open();
      co_await client.connection.wait_for_input();
    } catch (const boost::system::system_error&) {
      // Refused is as good as closed.
    }
    client.connection.close();
    ++window_.idle_reopened;
    co_await until(Clock::now() + kWaitAfterFailure);
  }
}

Awaitable<void> LoadThread::close_overdue() {
  for (;;) {
    const auto now = Clock::now();
    for (Client& client : clients_) {
      if (client.overdue <= now) client.connection.close();
    }
    co_await until(now + seconds(1));
  }
}

}  // namespace blindfuse::load
