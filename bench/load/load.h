// A whole load: its queries, its connections as coroutines in one thread, and the change of both
// when the server's epoch changes. Includes Boost.Asio, so few files include this.
#pragma once

// Before Asio, whose version 1.74 uses std::exchange without it.
#include <utility>

#include <boost/asio/basic_waitable_timer.hpp>
#include <chrono>
#include <deque>
#include <exception>
#include <future>
#include <map>
#include <memory>
#include <mutex>
#include <random>
#include <thread>
#include <vector>

#include "bench/load/answer_check.h"
#include "bench/load/connection.h"

namespace blindfuse::load {

// Times in milliseconds.
class Latencies {
 public:
  void add_seconds(double seconds) { milliseconds_.push_back(static_cast<float>(seconds * 1e3)); }
  void merge(const Latencies& other);
  size_t count() const { return milliseconds_.size(); }
  // The nearest rank: the smallest value that at least a share of `p` (above 0, at most 1) of all
  // does not exceed; 0 of none.
  double percentile_ms(double p) const;

 private:
  mutable std::vector<float> milliseconds_;  // in any order
};

// The counts of one interval.
struct Window {
  double seconds = 0;
  uint64_t requests = 0;  // answered with 200
  uint64_t lookups = 0;   // keys that were asked for in them
  uint64_t left_out = 0;  // keys that they did not ask for, because no bucket was free
  Latencies latency;
  std::map<std::string, uint64_t> errors;  // by status; "connection": no answer came
  uint64_t bytes_up = 0;
  uint64_t bytes_down = 0;
  uint64_t waiting = 0;  // at its end: arrivals for which no connection was free
  uint64_t epoch_changes = 0;
  double paused_seconds = 0;  // on their account
};

class Load {
 public:
  using Clock = std::chrono::steady_clock;

  // Fetches the hints and makes the queries. Throws the errors of reading files and of the client
  // library.
  explicit Load(const Options& options);
  // Breaks off the work in progress.
  ~Load();
  Load(const Load&) = delete;
  Load& operator=(const Load&) = delete;

  // The queries before the load begins. Not after start().
  const QueryPool& pool() const { return *pool_; }

  void start();
  // Sleeps, and throws the exception with which the load failed.
  void sleep_until(Clock::time_point time);
  // The counts since the last call.
  Window take_window();
  // Ends the load and checks answers.
  CheckResult stop();

 private:
  using Pool = std::shared_ptr<const QueryPool>;
  using Timer = boost::asio::basic_waitable_timer<Clock, boost::asio::wait_traits<Clock>, Executor>;

  struct Client {
    Client(boost::asio::io_context& io, Endpoint& endpoint) : connection(io, endpoint) {}

    Connection connection;
    Clock::time_point answered = {};                       // the last time
    Clock::time_point overdue = Clock::time_point::max();  // when it has to be answered
  };

  struct Request {
    Pool pool;
    size_t number;  // in the pool
    bool is_kept;   // its answer, to be checked
    Clock::time_point due;
    Clock::time_point sent;
  };

  Pool make_pool();
  // These functions run in threads of their own: the load's, and that of a change.
  void run();
  void change_epoch();
  void fail(std::exception_ptr trouble);
  void end_threads();

  void spawn(Awaitable<void> coroutine);
  Awaitable<void> until(Clock::time_point time);
  Awaitable<void> until_there_is_a_pool();
  Awaitable<void> keep_asking(Client& client);
  Awaitable<void> let_arrive();
  Awaitable<void> close_overdue();
  Request next_request(Clock::time_point now);
  Clock::duration count(const Request& request, Response& response, Clock::time_point now);

  const Options options_;
  KeySource keys_;
  ServedDatabase served_;
  AnswerCheck answers_;
  CheckResult checks_;
  std::promise<void> failure_;
  std::future<void> failed_;
  std::once_flag has_failed_;

  // The load's thread alone uses these members, once it has begun.
  boost::asio::io_context io_{BOOST_ASIO_CONCURRENCY_HINT_UNSAFE_IO};
  std::optional<Endpoint> endpoint_;
  Timer pool_came_{io_};
  std::deque<Client> clients_;
  Pool pool_;         // null while the epoch changes
  size_t taken_ = 0;  // requests of this pool that were sent
  std::mt19937_64 random_;
  Window window_;
  Clock::time_point window_start_ = Clock::now();
  std::vector<Client*> free_;          // open loop
  std::deque<Clock::time_point> due_;  // open loop
  std::future<void> change_;           // the last one
  std::thread thread_;
};

}  // namespace blindfuse::load
