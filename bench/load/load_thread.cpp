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
    // What was posted is run even after a failure.
    for (bool is_stopped = false; !is_stopped;) {
      try {
        io_.run();
        is_stopped = true;
      } catch (...) {
        events_.failed(std::current_exception());
      }
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

// Open loop: requests arrive by the clock; those that find no connection free wait for one.
Awaitable<void> LoadThread::let_arrive() {
  Clock::time_point arrival;
  for (;;) {
    if (!pool_) {
      due_.clear();
      co_await until_there_is_a_pool();
      arrival = Clock::now();
    }
    // The gaps are those of requests whose queries are for one key each.
    arrival += arrivals_.next_gap() * pool_->keys_per_query();
    if (arrival > Clock::now()) co_await until(arrival);
    if (due_.size() < kWaitingMax) {
      due_.push_back(arrival);
    } else {
      ++window_.given_up;
    }
    if (!free_.empty()) {
      Client& client = *free_.back();
      free_.pop_back();
      spawn(keep_asking(client));
    }
  }
}

// Asks one request after another: in a closed loop forever, in an open loop while any is due.
Awaitable<void> LoadThread::keep_asking(Client& client) {
  Connection& connection = client.connection;
  Clock::time_point now = Clock::now();
  for (;;) {
    if (options_.is_open_loop() && (!pool_ || due_.empty())) break;
    if (!pool_) {
      co_await until_there_is_a_pool();
      now = Clock::now();
    }
    const Request request = next_request(now);
    std::string_view rest = (*request.pool)[request.number].bytes;
    client.overdue = request.sent + seconds(options_.timeout_s);
    ResponseReader response(request.is_kept);
    try {
      if (!connection.is_open() ||
          (client.answered + kIdleMin < request.sent && connection.has_input())) {
        if (std::exchange(client.was_open, true)) ++window_.reconnects;
        co_await connection.open();
      }
      window_.bytes_up += rest.size();
      rest.remove_prefix(connection.write_now(rest));
      if (!rest.empty()) co_await connection.write(rest);
      bool is_whole = false;
      while (!is_whole) {
        const size_t count = co_await connection.receive();
        is_whole = connection.take(response, count);
      }
    } catch (const boost::system::system_error&) {
      connection.close();
      response.status = 0;
    }
    client.overdue = Clock::time_point::max();
    client.answered = now = Clock::now();
    const Clock::duration wait = count(request, response, now);
    if (wait > Clock::duration{}) {
      co_await until(now + wait);
      now = Clock::now();
    }
  }
  free_.push_back(&client);
}

LoadThread::Request LoadThread::next_request(Clock::time_point now) {
  Clock::time_point due = now;
  if (options_.is_open_loop()) {
    due = due_.front();
    due_.pop_front();
  }
  const size_t taken = pool_->take();
  if (taken >= pool_->size()) ++window_.resent;
  // The first, so that there is one, and by chance: every n-th would be the same few of the pool,
  // again and again.
  const bool is_kept =
      options_.check_every > 0 && (taken == 0 || random_() % options_.check_every == 0);
  return {pool_, taken % pool_->size(), is_kept, due, now};
}

// A response, of status 0 when there is none. Returns how long the connection has to wait before
// the next request.
Clock::duration LoadThread::count(const Request& request, ResponseReader& response,
                                  Clock::time_point now) {
  window_.bytes_down += response.byte_count;
  if (response.status == 200) {
    ++window_.requests;
    const PooledRequest& asked = (*request.pool)[request.number];
    window_.lookups += asked.key_count;
    window_.left_out += asked.left_out;
    window_.latency.add_seconds(seconds_between(request.due, now));
    if (request.is_kept) answers_.keep(*request.pool, request.number, std::move(response.body));
    return {};
  }
  if (response.status == 0) {
    ++window_.errors["connection"];
    return kWaitAfterFailure;
  }
  ++window_.errors[std::to_string(response.status)];
  if (options_.epoch_changes && (response.status == 404 || response.status == 410)) {
    if (pool_ == request.pool) pool_ = nullptr;
    events_.epoch_gone(request.pool);
  }
  if (response.status != 429 && response.status != 503) return {};
  window_.refused.add_seconds(seconds_between(request.sent, now));
  // A client that is refused in an open loop is gone; the next one comes by the clock.
  if (options_.is_open_loop()) return {};
  return std::min(kBusyWaitMax, seconds(response.retry_after_s.value_or(1)));
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
    ResponseReader response(false);
    try {
      if (!connection.is_open()) co_await connection.open();
      double allowed = 0;
      while (!rest.empty()) {
        allowed += bytes_a_tick;
        const std::string_view piece = rest.substr(0, static_cast<size_t>(allowed));
        co_await connection.write(piece);
        allowed -= static_cast<double>(piece.size());
        rest.remove_prefix(piece.size());
        co_await until(Clock::now() + kSlowTick);
      }
      client.overdue = Clock::now() + seconds(options_.timeout_s);
      co_await connection.read(response);
    } catch (const boost::system::system_error&) {
      connection.close();
      response.status = 0;
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
      co_await client.connection.receive();
    } catch (const boost::system::system_error&) {
      // A refused connection counts as closed.
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
