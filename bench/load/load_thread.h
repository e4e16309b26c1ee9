// One thread of the load: its connections, and their requests and times. Includes Boost.Asio, so
// few files include this.
#pragma once

// Before Asio, whose version 1.74 uses std::exchange without it.
#include <utility>

#include <boost/asio/steady_timer.hpp>
#include <deque>
#include <exception>
#include <functional>
#include <future>
#include <memory>
#include <random>
#include <thread>
#include <vector>

#include "bench/load/answer_check.h"
#include "bench/load/connection.h"
#include "bench/load/poisson_arrivals.h"
#include "bench/load/window.h"

namespace blindfuse::load {

using Clock = std::chrono::steady_clock;

class LoadThread {
 public:
  using Pool = std::shared_ptr<const QueryPool>;

  // What it tells the others, in its own thread.
  struct Events {
    // Of this pool, as the server says; nothing more is sent from it. Only if
    // options.epoch_changes.
    std::function<void(const Pool&)> epoch_gone;
    std::function<void(std::exception_ptr)> failed;
  };

  // `options` are its share. Idle connections are opened at once, others when there is a pool.
  LoadThread(const Options& options, Endpoint& endpoint, AnswerCheck& answers, Events events);
  // Breaks off what is under way.
  ~LoadThread();
  LoadThread(const LoadThread&) = delete;
  LoadThread& operator=(const LoadThread&) = delete;

  // Sends requests of this pool from now on.
  void send_from(Pool pool);
  // The counts since the last call. Waits for them.
  Window take_window();

 private:
  using Timer = boost::asio::basic_waitable_timer<Clock, boost::asio::wait_traits<Clock>, Executor>;

  struct Client {
    Connection connection;
    Clock::time_point answered = {};                       // the last time
    Clock::time_point overdue = Clock::time_point::max();  // when it has to be answered
    bool was_open = false;
  };

  struct Request {
    Pool pool;
    size_t number;  // in the pool
    bool is_kept;   // its answer, to be checked
    Clock::time_point due;
    Clock::time_point sent;
  };

  Client& add_client();
  void spawn(Awaitable<void> coroutine);
  Awaitable<void> until(Clock::time_point time);
  Awaitable<void> until_there_is_a_pool();

  Awaitable<void> keep_asking(Client& client);
  Awaitable<void> let_arrive();
  Awaitable<void> send_slowly(Client& client);
  Awaitable<void> stay_idle(Client& client);
  Awaitable<void> close_overdue();

  Request next_request(Clock::time_point now);
  Clock::duration count(const Request& request, ResponseReader& response, Clock::time_point now);

  const Options options_;
  Endpoint& endpoint_;
  AnswerCheck& answers_;
  const Events events_;
  boost::asio::io_context io_{BOOST_ASIO_CONCURRENCY_HINT_UNSAFE_IO};  // its thread's alone
  Timer pool_came_{io_};
  std::deque<Client> clients_;
  std::mt19937_64 random_;
  PoissonArrivals arrivals_;
  Pool pool_;
  Window window_;
  Clock::time_point window_start_ = Clock::now();
  // Of the open loop:
  std::vector<Client*> free_;
  std::deque<Clock::time_point> due_;
  std::thread thread_;
};

}  // namespace blindfuse::load
