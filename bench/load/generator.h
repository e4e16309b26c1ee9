// Connections that carry the pool's requests, and what becomes of them. When a request is sent is
// up to a derived class.
#pragma once

#include <functional>
#include <memory>
#include <random>
#include <vector>

#include "bench/load/answer_check.h"
#include "bench/load/event_loop.h"
#include "bench/load/http_connection.h"
#include "bench/load/window.h"

namespace blindfuse::load {

class Generator : public HttpConnection::Owner {
 public:
  // `window` counts; it may be emptied at any time.
  Generator(EventLoop& loop, const Endpoint& endpoint, const Options& options, Window& window,
            AnswerCheck& answers);

  // The first time, and after pause(). The pool outlives the load, or stays until it is_drained().
  void start(const QueryPool& pool);

  // Sends nothing more; `drained` is called when the last answer has come. Calls of epoch_gone come
  // from 404 and 410.
  void pause(std::function<void()> drained);
  void on_epoch_gone(std::function<void()> action) { epoch_gone_ = std::move(action); }

  virtual size_t waiting() const = 0;

  // Moves the connections' counts since the last call into the window.
  void count_traffic();

 protected:
  struct Client {
    std::unique_ptr<HttpConnection> connection;
    size_t request = 0;
    bool kept = false;
    Clock::time_point due;  // from when its latency counts
    Clock::time_point sent;
    HttpConnection::Traffic counted;
  };

  // Sends the next request of the pool over a free connection.
  void send(Client& client, Clock::time_point due);

  // A connection is there for another request: at first, after an answer, and some time after a
  // failure.
  virtual void on_free(Client& client) = 0;
  // Requests may be sent from now on; on_free follows for every connection.
  virtual void on_start() {}

  // How long a refused connection waits before it is free.
  virtual Clock::duration wait_after_refusal(const Reply& reply) const = 0;

  bool is_running() const { return pool_ != nullptr; }
  EventLoop& loop() { return loop_; }
  Window& window() { return window_; }

 private:
  void on_reply(HttpConnection& connection, Reply reply) override;
  void on_broken(HttpConnection& connection) override;
  void count_success(Client& client, Reply& reply);
  void finish(Client& client, Clock::duration wait);
  void close_overdue();

  EventLoop& loop_;
  const Options& options_;
  Window& window_;
  AnswerCheck& answers_;
  std::mt19937_64 random_;
  std::vector<Client> clients_;
  const QueryPool* pool_ = nullptr;
  size_t next_ = 0;   // of the pool
  uint64_t run_ = 0;  // of starts
  size_t in_flight_ = 0;
  std::function<void()> drained_;
  std::function<void()> epoch_gone_;
};

// Closed for a number of connections, open for a rate, as the options say.
std::unique_ptr<Generator> make_generator(EventLoop& loop, const Endpoint& endpoint,
                                          const Options& options, Window& window,
                                          AnswerCheck& answers);

}  // namespace blindfuse::load
