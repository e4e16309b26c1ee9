#include "bench/load/generator.h"

#include <algorithm>
#include <deque>

#include "bench/load/poisson_arrivals.h"

namespace blindfuse::load {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

constexpr milliseconds kWaitAfterFailure{100};
constexpr seconds kBusyWaitMax{60};
constexpr size_t kWaitingMax = 1'000'000;

double seconds_between(Clock::time_point from, Clock::time_point to) {
  return std::chrono::duration<double>(to - from).count();
}

// Each connection asks again when it is answered.
class ClosedLoop : public Generator {
 public:
  ClosedLoop(EventLoop& loop, const Endpoint& endpoint, const Options& options, Window& window,
             AnswerCheck& answers)
      : Generator(loop, endpoint, options, window, answers), busy_wait_ms_(options.busy_wait_ms) {}

  size_t waiting() const override { return 0; }

 private:
  void on_free(Client& client) override { send(client, Clock::now()); }

  Clock::duration wait_after_refusal(const Reply& reply) const override {
    if (busy_wait_ms_) return milliseconds(*busy_wait_ms_);
    return std::min(kBusyWaitMax, seconds(reply.retry_after_s.value_or(1)));
  }

  const std::optional<unsigned> busy_wait_ms_;
};

// Requests arrive by the clock; those that find no connection free wait for one.
class OpenLoop : public Generator {
 public:
  OpenLoop(EventLoop& loop, const Endpoint& endpoint, const Options& options, Window& window,
           AnswerCheck& answers)
      : Generator(loop, endpoint, options, window, answers),
        arrivals_(*options.rate / options.queries_per_request, options.seed) {}

  size_t waiting() const override { return due_.size(); }

 private:
  void on_start() override {
    free_.clear();
    due_.clear();
    next_arrival_ = Clock::now();
    if (!std::exchange(is_ticking_, true)) schedule();
  }

  void on_free(Client& client) override {
    free_.push_back(&client);
    send_due();
  }

  // Who is refused is gone; the next one comes by the clock.
  Clock::duration wait_after_refusal(const Reply&) const override { return {}; }

  void schedule() {
    next_arrival_ += arrivals_.next_gap();
    loop().at(next_arrival_, [this] { arrive(); });
  }

  void arrive() {
    if (!is_running()) {
      is_ticking_ = false;
      return;
    }
    if (due_.size() < kWaitingMax) {
      due_.push_back(next_arrival_);
    } else {
      ++window().given_up;
    }
    send_due();
    schedule();
  }

  void send_due() {
    while (is_running() && !due_.empty() && !free_.empty()) {
      Client& client = *free_.back();
      free_.pop_back();
      const Clock::time_point due = due_.front();
      due_.pop_front();
      send(client, due);
    }
  }

  PoissonArrivals arrivals_;
  Clock::time_point next_arrival_;
  bool is_ticking_ = false;
  std::vector<Client*> free_;
  std::deque<Clock::time_point> due_;
};

}  // namespace

Generator::Generator(EventLoop& loop, const Endpoint& endpoint, const Options& options,
                     Window& window, AnswerCheck& answers)
    : loop_(loop), options_(options), window_(window), answers_(answers), random_(options.seed) {
  clients_.resize(options.client_count());
  for (size_t i = 0; i < clients_.size(); ++i) {
    clients_[i].connection = std::make_unique<HttpConnection>(loop, endpoint, *this, i);
  }
  loop_.at(Clock::now() + seconds(1), [this] { close_overdue(); });
}

void Generator::start(const QueryPool& pool) {
  pool_ = &pool;
  next_ = 0;
  ++run_;
  on_start();
  for (Client& client : clients_) on_free(client);
}

void Generator::pause(std::function<void()> drained) {
  pool_ = nullptr;
  drained_ = std::move(drained);
  // Not at once: the caller may be within an answer.
  if (in_flight_ == 0) loop_.at(Clock::now(), std::exchange(drained_, nullptr));
}

void Generator::send(Client& client, Clock::time_point due) {
  client.request = next_ % pool_->size();
  // The first, so that there is one, and by chance: every so many would be the same few of the
  // pool, again and again.
  client.kept = options_.check_every > 0 && (next_ == 0 || random_() % options_.check_every == 0);
  if (next_++ >= pool_->size()) ++window_.resent;
  client.due = due;
  client.sent = Clock::now();
  ++in_flight_;
  client.connection->send((*pool_)[client.request].bytes, client.kept);
}

void Generator::on_reply(HttpConnection& connection, Reply reply) {
  Client& client = clients_[connection.id()];
  Clock::duration wait{};
  if (reply.status == 200) {
    count_success(client, reply);
  } else {
    ++window_.errors[std::to_string(reply.status)];
    if (reply.status == 503) {
      window_.refused.add_seconds(seconds_between(client.sent, Clock::now()));
      wait = wait_after_refusal(reply);
    }
    if ((reply.status == 404 || reply.status == 410) && is_running() && epoch_gone_) epoch_gone_();
  }
  finish(client, wait);
}

void Generator::on_broken(HttpConnection& connection) {
  ++window_.errors["connection"];
  finish(clients_[connection.id()], kWaitAfterFailure);
}

void Generator::count_success(Client& client, Reply& reply) {
  ++window_.requests;
  window_.lookups += options_.queries_per_request;
  window_.latency.add_seconds(seconds_between(client.due, Clock::now()));
  if (client.kept) answers_.keep(client.request, std::move(reply.body));
}

void Generator::finish(Client& client, Clock::duration wait) {
  --in_flight_;
  if (!is_running()) {
    if (in_flight_ == 0 && drained_) std::exchange(drained_, nullptr)();
  } else if (wait == Clock::duration{}) {
    on_free(client);
  } else {
    // A start that came in between has set it free already.
    loop_.at(Clock::now() + wait, [this, &client, run = run_] {
      if (is_running() && run == run_) on_free(client);
    });
  }
}

void Generator::count_traffic() {
  for (Client& client : clients_) {
    const HttpConnection::Traffic& now = client.connection->traffic();
    window_.bytes_up += now.bytes_up - client.counted.bytes_up;
    window_.bytes_down += now.bytes_down - client.counted.bytes_down;
    const uint64_t firsts = client.counted.opened == 0 && now.opened > 0 ? 1 : 0;
    window_.reconnects += now.opened - client.counted.opened - firsts;
    client.counted = now;
  }
}

void Generator::close_overdue() {
  const Clock::time_point sent_by = Clock::now() - seconds(options_.timeout_s);
  for (Client& client : clients_) {
    if (!client.connection->is_busy() || client.sent > sent_by) continue;
    client.connection->close();
    on_broken(*client.connection);
  }
  loop_.at(Clock::now() + seconds(1), [this] { close_overdue(); });
}

std::unique_ptr<Generator> make_generator(EventLoop& loop, const Endpoint& endpoint,
                                          const Options& options, Window& window,
                                          AnswerCheck& answers) {
  if (options.is_open_loop()) {
    return std::make_unique<OpenLoop>(loop, endpoint, options, window, answers);
  }
  return std::make_unique<ClosedLoop>(loop, endpoint, options, window, answers);
}

}  // namespace blindfuse::load
