#include "bench/load/load.h"

#include <algorithm>
#include <boost/asio/co_spawn.hpp>
#include <boost/asio/post.hpp>
#include <boost/asio/redirect_error.hpp>
#include <cmath>

namespace blindfuse::load {
namespace {

namespace asio = boost::asio;
using std::chrono::milliseconds;
using std::chrono::seconds;

constexpr milliseconds kWaitAfterFailure{100};
constexpr seconds kBusyWaitMax{60};
// A server closes connections that are idle for longer than this.
constexpr seconds kIdleMin{1};

double seconds_between(Load::Clock::time_point from, Load::Clock::time_point to) {
  return std::chrono::duration<double>(to - from).count();
}

}  // namespace

void Latencies::merge(const Latencies& other) {
  milliseconds_.insert(milliseconds_.end(), other.milliseconds_.begin(), other.milliseconds_.end());
}

double Latencies::percentile_ms(double p) const {
  if (milliseconds_.empty()) return 0;
  // The slack is for shares that binary fractions only come close to: 0.9 of 10 is the ninth.
  const double exact = p * static_cast<double>(count());
  const auto rank = static_cast<std::ptrdiff_t>(std::ceil(exact - 1e-9 * exact)) - 1;
  std::nth_element(milliseconds_.begin(), milliseconds_.begin() + rank, milliseconds_.end());
  return milliseconds_[static_cast<size_t>(rank)];
}

Load::Load(const Options& options)
    : options_(options),
      keys_(options),
      served_(options),
      failed_(failure_.get_future()),
      pool_(make_pool()) {}

Load::~Load() { end_threads(); }

void Load::start() {
  endpoint_.emplace(parse_url(options_.url), options_.ca_file, options_.from);
  for (unsigned i = 0; i < options_.client_count(); ++i) {
    Client& client = clients_.emplace_back(io_, *endpoint_);
    if (options_.is_open_loop()) {
      free_.push_back(&client);
    } else {
      spawn(keep_asking(client));
    }
  }
  if (options_.is_open_loop()) spawn(let_arrive());
  spawn(close_overdue());
  thread_ = std::thread([this] { run(); });
}

void Load::sleep_until(Clock::time_point time) {
  if (failed_.wait_until(time) == std::future_status::ready) failed_.get();
}

Window Load::take_window() {
  std::promise<Window> taken;
  asio::post(io_, [this, &taken] {
    const auto now = Clock::now();
    window_.seconds = seconds_between(std::exchange(window_start_, now), now);
    window_.waiting = due_.size();
    taken.set_value(std::exchange(window_, {}));
  });
  return taken.get_future().get();
}

CheckResult Load::stop() {
  end_threads();
  if (failed_.wait_for(seconds(0)) == std::future_status::ready) failed_.get();
  checks_.merge(answers_.check(served_));
  return checks_;
}

void Load::end_threads() {
  io_.stop();
  if (thread_.joinable()) thread_.join();
  if (change_.valid()) change_.get();
}

Load::Pool Load::make_pool() {
  auto pool = std::make_shared<const QueryPool>(served_.sync(), keys_, options_);
  answers_.set_pool(pool);
  return pool;
}

// Functions that were posted run even after a failure.
void Load::run() {
  for (bool is_stopped = false; !is_stopped;) {
    try {
      io_.run();
      is_stopped = true;
    } catch (...) {
      fail(std::current_exception());
    }
  }
}

void Load::change_epoch() {
  const auto begun = Clock::now();
  try {
    // The old answers are checked first: their hints go when the new ones come.
    checks_.merge(answers_.check(served_));
    asio::post(io_, [this, begun, pool = make_pool()] {
      pool_ = pool;
      taken_ = 0;
      ++window_.epoch_changes;
      window_.paused_seconds += seconds_between(begun, Clock::now());
      pool_came_.cancel();
    });
  } catch (...) {
    fail(std::current_exception());
  }
}

void Load::fail(std::exception_ptr trouble) {
  std::call_once(has_failed_, [&] { failure_.set_exception(trouble); });
}

void Load::spawn(Awaitable<void> coroutine) {
  asio::co_spawn(io_, std::move(coroutine), [](std::exception_ptr trouble) {
    if (trouble) std::rethrow_exception(trouble);
  });
}

Awaitable<void> Load::until(Clock::time_point time) {
  Timer timer(io_, time);
  co_await timer.async_wait(use_awaitable);
}

Awaitable<void> Load::until_there_is_a_pool() {
  boost::system::error_code cancelled;
  while (!pool_) {
    pool_came_.expires_at(Clock::time_point::max());
    co_await pool_came_.async_wait(asio::redirect_error(use_awaitable, cancelled));
  }
}

// In an open loop requests arrive by the clock, as a Poisson process; those that find no connection
// free wait for one.
Awaitable<void> Load::let_arrive() {
  Clock::time_point arrival = Clock::now();
  for (;;) {
    if (!pool_) {
      due_.clear();
      co_await until_there_is_a_pool();
      arrival = Clock::now();
    }
    std::exponential_distribution<double> gap(*options_.rate / pool_->keys_per_query());
    arrival += std::chrono::nanoseconds(static_cast<int64_t>(gap(random_) * 1e9));
    if (arrival > Clock::now()) co_await until(arrival);
    due_.push_back(arrival);
    if (!free_.empty()) {
      Client& client = *free_.back();
      free_.pop_back();
      spawn(keep_asking(client));
    }
  }
}

// Asks one request after another: in a closed loop forever, in an open loop while any is due.
Awaitable<void> Load::keep_asking(Client& client) {
  Connection& connection = client.connection;
  Clock::time_point now = Clock::now();
  for (;;) {
    if (options_.is_open_loop() && (!pool_ || due_.empty())) break;
    if (!pool_) {
      co_await until_there_is_a_pool();
      now = Clock::now();
    }
    const Request request = next_request(now);
    const std::string& bytes = (*request.pool)[request.number].bytes;
    client.overdue = request.sent + seconds(options_.timeout_s);
    Response response;
    try {
      if (!connection.is_open() ||
          (client.answered + kIdleMin < request.sent && connection.has_input())) {
        co_await connection.open();
      }
      window_.bytes_up += bytes.size();
      response = co_await connection.ask(bytes);
    } catch (const boost::system::system_error&) {
      connection.close();
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

Load::Request Load::next_request(Clock::time_point now) {
  Clock::time_point due = now;
  if (options_.is_open_loop()) {
    due = due_.front();
    due_.pop_front();
  }
  const size_t taken = taken_++;
  // The first answer is kept, so that there is one, and others by chance: every n-th would be the
  // same few of the pool, again and again.
  const bool is_kept =
      options_.check_every > 0 && (taken == 0 || random_() % options_.check_every == 0);
  return {pool_, taken % pool_->size(), is_kept, due, now};
}

// Counts a response, of status 0 when there is none. Returns how long the connection has to wait
// before the next request.
Load::Clock::duration Load::count(const Request& request, Response& response,
                                  Clock::time_point now) {
  window_.bytes_down += response.byte_count;
  if (response.status == 200) {
    ++window_.requests;
    const PooledRequest& asked = (*request.pool)[request.number];
    window_.lookups += asked.keys.size();
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
  // The first connection of a pool that learns it begins the change.
  if (options_.epoch_changes && (response.status == 404 || response.status == 410) &&
      pool_ == request.pool) {
    pool_ = nullptr;
    change_ = std::async(std::launch::async, [this] { change_epoch(); });
  }
  if (response.status != 429 && response.status != 503) return {};
  // A client that is refused in an open loop is gone; the next one comes by the clock.
  if (options_.is_open_loop()) return {};
  return std::min(kBusyWaitMax, seconds(response.retry_after_s.value_or(1)));
}

Awaitable<void> Load::close_overdue() {
  for (;;) {
    const auto now = Clock::now();
    for (Client& client : clients_) {
      if (client.overdue <= now) client.connection.close();
    }
    co_await until(now + seconds(1));
  }
}

}  // namespace blindfuse::load
